/* Memory by handle (cuMemCreate). It belongs to the card that the request names, whatever context is current, and it
   lives as long as a handle, a mapping or an exported file of it does: a program may release the handle and keep the
   mapping. */
#define _GNU_SOURCE
#include "memory.h"

#define OF_ANOTHER 0            /* in place of the handle of one's own memory */

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *wish,
                     unsigned long long flags) {
    charge_t charge;
    int is_on_card = wish && wish->location.type == LOCATION_DEVICE;
    CUresult result = begin_charge(&charge, is_on_card ? card_of_device(wish->location.id) : NO_CARD, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = CALL(cuMemCreate, handle, bytes, wish, flags);
    return end_charge(&charge, result, HANDLE, result == CUDA_SUCCESS ? *handle : 0);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    block_t block;
    int was_last = blocks_drop(HANDLE, handle, &block);
    CUresult result = CALL(cuMemRelease, handle);
    if (result != CUDA_SUCCESS)
        was_last ? blocks_put(block) : blocks_hold(HANDLE, handle);
    else if (was_last)
        give_back_handle(&block);
    return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
    CUresult result = CALL(cuMemRetainAllocationHandle, handle, address);
    if (result == CUDA_SUCCESS)
        blocks_hold(HANDLE, *handle);
    return result;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    CUresult result = CALL(cuMemMap, address, bytes, offset, handle, flags);
    if (result != CUDA_SUCCESS)
        return result;
    int is_own = blocks_hold(HANDLE, handle);
    blocks_put(block_of(address, bytes, is_own ? handle : OF_ANOTHER, current_card(), MAPPING));
    return result;
}

/* A range may have several mappings in it, one after the other. */
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    CUresult result = CALL(cuMemUnmap, address, bytes);
    block_t mapping, block;
    for (CUdeviceptr at = address; result == CUDA_SUCCESS && at < address + bytes; at += mapping.bytes) {
        if (!blocks_drop(MAPPING, at, &mapping))
            break;
        if (mapping.owner == OF_ANOTHER && mapping.card != NO_CARD)
            upkeep_end_import(mapping.card);
        else if (blocks_drop(HANDLE, mapping.owner, &block))
            give_back_handle(&block);
    }
    return result;
}
