/* Device memory: address space of this process, reserved and not backed until somebody copies into it, so that a card of
   80 GB costs nothing to fill. What counts against the card is counted in `machine`. */
#define _GNU_SOURCE
#include "cuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL_GRAIN ((size_t)512)
#define LARGE_GRAIN ((size_t)2 << 20)
#define LARGE ((size_t)1 << 20)

typedef struct block {
    CUdeviceptr begin;
    size_t asked, mapped;
    uint64_t charged;
    const card_t *card;
    struct block *next;
} block_t;

/* What the driver would take for it: small ones share its pages, large ones have pages of their own. */
static uint64_t charge_of(size_t bytes) {
    size_t grain = bytes < LARGE ? SMALL_GRAIN : LARGE_GRAIN;
    return bytes > SIZE_MAX - grain ? UINT64_MAX : (bytes + grain - 1) / grain * grain;
}

static CUresult no_context(void) {
    return driver.is_ready ? INVALID_CONTEXT : NOT_INITIALIZED;
}

API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    if (pointer == NULL || bytes == 0)
        return INVALID_VALUE;
    if (current_context() == NULL)
        return no_context();
    const card_t *card = current_context()->card;
    uint64_t charged = charge_of(bytes);
    block_t *block = malloc(sizeof *block);
    if (block == NULL || machine_take(card, charged)) {
        free(block);
        return OUT_OF_MEMORY;
    }
    void *space = mmap(NULL, charged, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) {
        machine_give_back(card, charged);
        free(block);
        return OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&driver.mutex);
    *block = (block_t){(CUdeviceptr)(uintptr_t)space, bytes, charged, charged, card, driver.blocks};
    driver.blocks = block;
    pthread_mutex_unlock(&driver.mutex);
    *pointer = block->begin;
    return SUCCESS;
}

static void free_block(block_t *block) {
    munmap((void *)(uintptr_t)block->begin, block->mapped);
    machine_give_back(block->card, block->charged);
    free(block);
}

void free_blocks_of(const card_t *card) {
    for (block_t **link = &driver.blocks; *link != NULL;) {
        block_t *block = *link;
        if (block->card != card) {
            link = &block->next;
            continue;
        }
        *link = block->next;
        free_block(block);
    }
}

API CUresult cuMemFree_v2(CUdeviceptr pointer) {
    if (pointer == 0)
        return SUCCESS;
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
