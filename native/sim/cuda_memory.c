/* Device memory: address space of this process, reserved and not backed until somebody copies into it, so that a card of
   80 GB costs nothing to fill. What counts against the card is counted in `machine`. */
#define _GNU_SOURCE
#include "cuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL_GRAIN 512
#define LARGEST_SMALL ((size_t)1 << 20)
#define PITCH_GRAIN 512

typedef struct block {
    CUdeviceptr begin;
    size_t asked, mapped;
    CUcontext context;
    CUmemoryPool pool;
    const card_t *card;
    struct block *next;
} block_t;

CUresult no_context(void) {
    return driver.is_ready ? INVALID_CONTEXT : NOT_INITIALIZED;
}

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
    return block->pool ? pool_take(block->pool, block->asked) : take_pages(block->card, block->asked);
}

static void free_block(block_t *block) {
    munmap((void *)(uintptr_t)block->begin, block->mapped);
    if (block->pool)
        pool_put_back(block->pool, block->asked);
    else
        give_pages_back(block->card, block->asked);
    free(block);
}

CUresult make_block(CUdeviceptr *pointer, size_t bytes, CUcontext context, CUmemoryPool pool) {
    if (pointer == NULL || bytes == 0)
        return INVALID_VALUE;
    if (context == NULL)
        return no_context();
    block_t *block = malloc(sizeof *block);
    if (block == NULL)
        return OUT_OF_MEMORY;
    *block = (block_t){0, bytes, round_up(bytes, 4096), context, pool, context->card, NULL};
    pthread_mutex_lock(&driver.mutex);
    int is_taken = take(block) == 0;
    void *space = is_taken ? mmap(NULL, block->mapped, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                           : MAP_FAILED;
    if (space != MAP_FAILED) {
        block->begin = *pointer = (CUdeviceptr)(uintptr_t)space;
        block->next = driver.blocks;
        driver.blocks = block;
    } else if (is_taken) {
        free_block(block);
    } else {
        free(block);
    }
    pthread_mutex_unlock(&driver.mutex);
    return space != MAP_FAILED ? SUCCESS : OUT_OF_MEMORY;
}

API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    return make_block(pointer, bytes, current_context(), NULL);
}

API CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
    (void)flags;
    return make_block(pointer, bytes, current_context(), NULL);
}

API CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned int grain) {
    (void)grain;
    if (pitch == NULL || (height && width > SIZE_MAX / 2 / height))
        return INVALID_VALUE;
    *pitch = round_up(width, PITCH_GRAIN);
    return make_block(pointer, *pitch * height, current_context(), NULL);
}

void free_blocks_of(CUcontext context) {
    for (block_t **link = &driver.blocks; *link != NULL;) {
        block_t *block = *link;
        if (block->context != context || block->pool) {
            link = &block->next;
            continue;
        }
        *link = block->next;
        free_block(block);
    }
}

CUresult free_block_at(CUdeviceptr pointer) {
    CUresult result = driver.is_ready ? INVALID_VALUE : NOT_INITIALIZED;
    pthread_mutex_lock(&driver.mutex);
    for (block_t **link = &driver.blocks; *link != NULL; link = &(*link)->next) {
        block_t *block = *link;
        if (block->begin != pointer)
            continue;
        *link = block->next;
        free_block(block);
        result = SUCCESS;
        break;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

API CUresult cuMemFree_v2(CUdeviceptr pointer) {
    return pointer ? free_block_at(pointer) : SUCCESS;
}

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    if (free_bytes == NULL || total_bytes == NULL)
        return INVALID_VALUE;
    if (current_context() == NULL)
        return no_context();
    *total_bytes = current_context()->card->memory_bytes;
    *free_bytes = *total_bytes - machine_used(current_context()->card);
    return SUCCESS;
}

API CUresult cuMemGetAddressRange_v2(CUdeviceptr *begin, size_t *bytes, CUdeviceptr pointer) {
    CUresult result = NOT_FOUND;
    pthread_mutex_lock(&driver.mutex);
    for (block_t *block = driver.blocks; block != NULL && result != SUCCESS; block = block->next) {
        if (pointer < block->begin || pointer >= block->begin + block->asked)
            continue;
        if (begin)
            *begin = block->begin;
        if (bytes)
            *bytes = block->asked;
        result = SUCCESS;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

/* Whether all of it is in one block. */
static int is_device_memory(CUdeviceptr pointer, size_t bytes) {
    CUdeviceptr begin;
    size_t length;
    return cuMemGetAddressRange_v2(&begin, &length, pointer) == SUCCESS && bytes <= begin + length - pointer;
}

API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    if (!is_device_memory(to, bytes))
        return INVALID_VALUE;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return SUCCESS;
}

API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    if (!is_device_memory(from, bytes))
        return INVALID_VALUE;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return SUCCESS;
}

API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes) {
    if (!is_device_memory(to, bytes))
        return INVALID_VALUE;
    memset((void *)(uintptr_t)to, value, bytes);
    return SUCCESS;
}
