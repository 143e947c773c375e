/* Memory beyond the limit, where the tile may have it: the host's, pinned, at an address that the card can use as its
   own. It is slower than the card's, and it is counted apart: under a name of its own in the region, so that it is
   bounded for all processes of the container together and given back at any death. */
#define _GNU_SOURCE
#include "compute.h"
#include "memory.h"

#include <stdio.h>
#include <string.h>

#define FOR_ALL_CONTEXTS 1
#define ON_THE_CARD 2

static _Atomic int is_used;     /* nobody looks for spilled memory before there is some */

void forget_spilled(void) {
    atomic_store(&is_used, 0);
}

/* What stands in the region for the host's part of a card. */
int card_of_spill(int card) {
    char name[UUID_LENGTH];
    snprintf(name, sizeof name, "host-%s", region_uuid(card) + 4);
    return region_card(name);
}

static CUresult allocate(CUdeviceptr *pointer, uint64_t bytes) {
    void *address = NULL;
    CUdeviceptr mapped = 0;
    if (real.cuMemHostAlloc == NULL || real.cuMemFreeHost == NULL || real.cuMemHostGetDevicePointer_v2 == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (real.cuMemHostAlloc(&address, bytes, FOR_ALL_CONTEXTS | ON_THE_CARD) != CUDA_SUCCESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (real.cuMemHostGetDevicePointer_v2(&mapped, address, 0) == CUDA_SUCCESS && mapped == (uintptr_t)address) {
        *pointer = mapped;
        return CUDA_SUCCESS;
    }
    real.cuMemFreeHost(address);        /* one address for both is what lets it be freed by either */
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult spill(CUdeviceptr *pointer, int card, uint64_t wish) {
    CUcontext context = NULL;
    uint64_t bytes = round_up(wish, PAGE), most = spill_limit_of(card), left;
    int part = most ? card_of_spill(card) : NO_CARD;
    if (part == NO_CARD || region_reserve(part, bytes, most, &left))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = allocate(pointer, bytes);
    real.cuCtxGetCurrent(&context);
    block_t block = block_of(*pointer, bytes, (uint64_t)(uintptr_t)context, part, SPILLED);
    if (result == CUDA_SUCCESS && blocks_put(block)) {
        real.cuMemFreeHost((void *)(uintptr_t)*pointer);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS)
        atomic_store(&is_used, 1);
    else
        region_give_back(part, bytes);
    return result;
}

int drop_spilled(CUdeviceptr pointer, block_t *block) {
    return atomic_load_explicit(&is_used, memory_order_relaxed) && blocks_drop(SPILLED, pointer, block);
}

/* As its stream would: not before what was given to the stream has ended. */
CUresult free_spilled_after(const block_t *block, CUstream stream) {
    capture_guard_t guard = captures_guard();
    if (real.cuStreamSynchronize)
        real.cuStreamSynchronize(stream);
    CUresult result = free_spilled(block);
    captures_unguard(guard);
    return result;
}

CUresult free_spilled(const block_t *block) {
    CUresult result = CALL(cuMemFreeHost, (void *)(uintptr_t)block->key);
    if (result != CUDA_SUCCESS)
        blocks_put(*block);
    else
        region_give_back(block->card, block->bytes);
    return result;
}
