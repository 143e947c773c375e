/* Memory by address. Every request is charged before the driver sees it, and given back when the driver has taken it
   back or never gave it. What the library did not see allocated goes to the driver untouched. */
#define _GNU_SOURCE
#include "tessera.h"

#include <pthread.h>
#include <string.h>

#define SMALL_GRAIN 512
#define LARGEST_SMALL ((uint64_t)1 << 20)
#define PITCH_GRAIN 512

/* Small blocks share pages, so what they take together is charged, page by page. */
static struct {
    pthread_mutex_t mutex;
    uint64_t bytes[MOST_CARDS];
} small = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void forget_small_blocks(void) {
    pthread_mutex_init(&small.mutex, NULL);
    memset(small.bytes, 0, sizeof small.bytes);
}

CUresult reserve_pages(int card, uint64_t bytes) {
    if (bytes == 0 || region_reserve(card, bytes, limit_of(card)) == 0)
        return CUDA_SUCCESS;
    if (trim_pools(card) && region_reserve(card, bytes, limit_of(card)) == 0)
        return CUDA_SUCCESS;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* As the driver would take it: a small block shares pages with others, a large one has its own. */
static CUresult reserve_block(int card, uint64_t bytes) {
    if (bytes > LARGEST_SMALL)
        return reserve_pages(card, round_up(bytes, PAGE));
    pthread_mutex_lock(&small.mutex);
    uint64_t before = small.bytes[card], after = before + round_up(bytes, SMALL_GRAIN);
    CUresult result = reserve_pages(card, round_up(after, PAGE) - round_up(before, PAGE));
    if (result == CUDA_SUCCESS)
        small.bytes[card] = after;
    pthread_mutex_unlock(&small.mutex);
    return result;
}

void give_back_block(int card, uint64_t bytes) {
    if (bytes > LARGEST_SMALL) {
        region_give_back(card, round_up(bytes, PAGE));
        return;
    }
    pthread_mutex_lock(&small.mutex);
    uint64_t before = small.bytes[card], after = before - round_up(bytes, SMALL_GRAIN);
    small.bytes[card] = after;
    region_give_back(card, round_up(before, PAGE) - round_up(after, PAGE));
    pthread_mutex_unlock(&small.mutex);
}

CUresult begin_charge(charge_t *charge, int card, uint64_t bytes) {
    *charge = (charge_t){bytes ? card : NO_CARD, bytes};
    return charge->card == NO_CARD ? CUDA_SUCCESS : reserve_block(card, bytes);
}

CUresult end_charge(const charge_t *charge, CUresult result, kind_t kind, uint64_t key) {
    CUcontext context = NULL;
    if (charge->card == NO_CARD)
        return result;
    if (result != CUDA_SUCCESS) {
        give_back_block(charge->card, charge->bytes);
        return result;
    }
    if (kind != HANDLE)
        real.cuCtxGetCurrent(&context);
    /* Where the process has no memory to remember it, it stays charged until the process ends. */
    blocks_put((block_t){key, charge->bytes, (uint64_t)(uintptr_t)context, 1, (int8_t)charge->card, (uint8_t)kind});
    return result;
}

CUresult end_free(int was_known, const block_t *block, CUresult result) {
    if (was_known && result == CUDA_SUCCESS)
        give_back_block(block->card, block->bytes);
    else if (was_known)
        blocks_put(*block);
    return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    charge_t charge;
    CUresult result = begin_charge(&charge, current_card(), bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = CALL(cuMemAlloc_v2, pointer, bytes);
    return end_charge(&charge, result, POINTER, result == CUDA_SUCCESS ? *pointer : 0);
}

CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes) {
    charge_t charge;
    CUresult result = begin_charge(&charge, current_card(), bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = CALL(cuMemAlloc, pointer, bytes);
    return end_charge(&charge, result, POINTER, result == CUDA_SUCCESS ? *pointer : 0);
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
    charge_t charge;
    CUresult result = begin_charge(&charge, current_card(), bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = CALL(cuMemAllocManaged, pointer, bytes, flags);
    return end_charge(&charge, result, POINTER, result == CUDA_SUCCESS ? *pointer : 0);
}

/* Rows are as long as the driver likes; on every card so far multiples of 512 bytes. */
CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned int element) {
    charge_t charge;
    uint64_t row = round_up(width, PITCH_GRAIN);
    uint64_t bytes = height && row > UINT64_MAX / height ? UINT64_MAX : row * height;
    CUresult result = begin_charge(&charge, current_card(), bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = CALL(cuMemAllocPitch_v2, pointer, pitch, width, height, element);
    return end_charge(&charge, result, POINTER, result == CUDA_SUCCESS ? *pointer : 0);
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
    block_t block;
    int was_known = blocks_drop(POINTER, pointer, &block);
    return end_free(was_known, &block, CALL(cuMemFree_v2, pointer));
}

CUresult cuMemFree(CUdeviceptr_v1 pointer) {
    block_t block;
    int was_known = blocks_drop(POINTER, pointer, &block);
    return end_free(was_known, &block, CALL(cuMemFree, pointer));
}
