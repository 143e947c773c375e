/* Memory that processes share. Whoever allocated it is charged, whoever imports it is not, as long as the other has it.
   Afterwards it belongs to the importer, and NVML says so: then it is charged as what the driver takes for itself
   (upkeep.c), and until the importer looks, as what nobody was charged with (measuring.c). */
#define _GNU_SOURCE
#include "memory.h"

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    CUdeviceptr begin;
    size_t bytes;
    CUresult result = CALL(cuIpcGetMemHandle, handle, pointer);
    if (result == CUDA_SUCCESS && real.cuMemGetAddressRange_v2 &&
        real.cuMemGetAddressRange_v2(&begin, &bytes, pointer) == CUDA_SUCCESS)
        blocks_mark_exported(POINTER, begin);
    return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
    CUresult result = CALL(cuIpcCloseMemHandle, pointer);
    int card = current_card();
    if (result == CUDA_SUCCESS && card != NO_CARD)
        upkeep_end_import(card);
    return result;
}

/* What was exported here comes back as the same handle, once more in use, or anew where it was given up. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *exported, int type) {
    CUresult result = CALL(cuMemImportFromShareableHandle, handle, exported, type);
    if (result == CUDA_SUCCESS)
        if (!blocks_hold(HANDLE, *handle))
            take_back_exported((int)(intptr_t)exported, *handle);
    return result;
}
