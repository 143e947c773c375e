#define _GNU_SOURCE
#include "cuda_blocks.h"
#include "cuda_graphs.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL_GRAIN 512
#define LARGEST_SMALL ((size_t)1 << 20)

CUresult no_context(void) {
    return driver.is_ready ? INVALID_CONTEXT : NOT_INITIALIZED;
}

/* ---- what they are charged ------------------------------------------------------------------------------------ */

/* Small blocks share pages, large ones have pages of their own. With the driver locked, as the next one. */
static int take_pages(const card_t *card, size_t bytes) {
    if (bytes > LARGEST_SMALL)
        return machine_take(card, round_up(bytes, PAGE));
    uint64_t *small = &driver.small_bytes[card->index], after = *small + round_up(bytes, SMALL_GRAIN);
    uint64_t more = round_up(after, PAGE) - round_up(*small, PAGE);
    if (more && machine_take(card, more))
        return -1;
    *small = after;
    return 0;
}

static void give_pages_back(const card_t *card, size_t bytes) {
    if (bytes > LARGEST_SMALL) {
        machine_give_back(card, round_up(bytes, PAGE));
        return;
    }
    uint64_t *small = &driver.small_bytes[card->index], after = *small - round_up(bytes, SMALL_GRAIN);
    machine_give_back(card, round_up(*small, PAGE) - round_up(after, PAGE));
    *small = after;
}

static int take(const block_t *block) {
    switch (block->source) {
    case OF_CARD:
    case MANAGED:
        return take_pages(block->card, block->asked);
    case OF_POOL:
        return pool_take(block->pool, block->asked);
    default: /* somebody else is charged, or later */
        return 0;
    }
}

static void give_back(const block_t *block) {
    if (block->source == OF_POOL)
        pool_put_back(block->pool, block->asked);
    if (block->source == OF_CARD || block->source == MANAGED)
        give_pages_back(block->card, block->asked);
}

/* ---- from beginning to end ------------------------------------------------------------------------------------ */

static void *reserve_space(size_t bytes, int file) {
    int kind = file == -1 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    void *space = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind, file, 0);
    return space == MAP_FAILED ? NULL : space;
}

CUresult make_block_of(source_t source, CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, int file) {
    CUcontext context;
    CUresult result = pointer && bytes ? check_context(&context) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    block_t *block = malloc(sizeof *block);
    void *space = block ? reserve_space(round_up(bytes, 4096), file) : NULL;
    if (space == NULL) {
        free(block);
        return OUT_OF_MEMORY;
    }
    *block = (block_t){(uintptr_t)space, bytes, round_up(bytes, 4096), source, context, pool, context->card, file,
                       .next = NULL};
    pthread_mutex_lock(&driver.mutex);
    int is_taken = take(block) == 0;
    if (is_taken) {
        *pointer = block->begin;
        block->next = driver.blocks;
        driver.blocks = block;
    }
    pthread_mutex_unlock(&driver.mutex);
    if (!is_taken) {
        munmap(space, block->mapped);
        free(block);
    }
    return is_taken ? SUCCESS : OUT_OF_MEMORY;
}

CUresult make_block(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool) {
    CUresult result = pool ? SUCCESS : check_unsafe();
    return result == SUCCESS ? make_block_of(pool ? OF_POOL : OF_CARD, pointer, bytes, pool, -1) : result;
}

block_t *find_block(CUdeviceptr address) {
    block_t *block = driver.blocks;
    while (block && (address < block->begin || address >= block->begin + block->asked))
        block = block->next;
    return block;
}

static void unlink_block(block_t *block) {
    block_t **link = &driver.blocks;
    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
}

/* What is left of a block that is in no list. */
static void end_block(block_t *block) {
    if (block->file != -1)
        close(block->file);
    free(block);
}

void remove_block(block_t *block) {
    unlink_block(block);
    munmap((void *)(uintptr_t)block->begin, block->mapped);
    give_back(block);
    end_block(block);
}

void free_blocks_of(CUcontext context) {
    for (block_t *block = driver.blocks, *next; block != NULL; block = next) {
        next = block->next;
        if (block->context == context && block->source != OF_POOL)
            remove_block(block);
    }
}

/* The block that begins there and can be freed, as memory that comes from other processes cannot. */
static block_t *find_beginning(CUdeviceptr pointer) {
    block_t *block = find_block(pointer);
    return block && block->begin == pointer && block->source != IMPORTED ? block : NULL;
}

CUresult free_block_at(CUdeviceptr pointer) {
    CUresult result = driver.is_ready ? INVALID_VALUE : NOT_INITIALIZED;
    pthread_mutex_lock(&driver.mutex);
    block_t *block = find_beginning(pointer);
    if (block && block->source != OF_GRAPH)
        remove_block(block);
    else if (block && block->is_live)
        end_graph_block(block);
    else
        block = NULL;
    pthread_mutex_unlock(&driver.mutex);
    return block ? SUCCESS : result;
}

/* Pages of the card that are the block's own. */
static uint64_t own_pages(const block_t *block) {
    int is_of_card = block->source == OF_CARD || block->source == MANAGED;
    return is_of_card && block->asked > LARGEST_SMALL ? round_up(block->asked, PAGE) : 0;
}

/* What is of a pool can be taken again at once, as it can in the same stream; pages of the card, and the address, when
   the stream has come so far. */
CUresult free_block_in(CUdeviceptr pointer, stream_t *stream) {
    pthread_mutex_lock(&driver.mutex);
    block_t *block = find_beginning(pointer);
    op_t op = {.kind = RELEASE};
    if (block && block->source != OF_GRAPH) {
        op.release.address = (void *)(uintptr_t)block->begin;
        op.release.bytes = block->mapped;
        op.release.card = block->card;
        op.release.pages = own_pages(block);
        unlink_block(block);
        if (op.release.pages == 0)
            give_back(block);
        end_block(block);
    }
    pthread_mutex_unlock(&driver.mutex);
    return op.release.bytes ? queue_push(stream, op) : free_block_at(pointer);
}

int is_device_memory(CUdeviceptr pointer, size_t bytes) {
    pthread_mutex_lock(&driver.mutex);
    const block_t *block = find_block(pointer);
    int is_inside = block && bytes <= block->begin + block->asked - pointer;
    pthread_mutex_unlock(&driver.mutex);
    return is_inside || (block == NULL && is_mapped(pointer, bytes));
}
