/* Memory of other processes, and of this one that comes back by a handle: whoever allocated it is charged, whoever
   imports it is not. It is remembered all the same, because NVML may say of both that they have it. */
#define _GNU_SOURCE
#include "memory.h"

static _Atomic int is_used;     /* nobody looks for imports before there are some */

void forget_imports(void) {
    atomic_store(&is_used, 0);
}

static uint64_t bytes_at(CUdeviceptr pointer) {
    CUdeviceptr begin;
    size_t bytes = 0;
    if (real.cuMemGetAddressRange_v2 == NULL || real.cuMemGetAddressRange_v2(&begin, &bytes, pointer) != CUDA_SUCCESS)
        return 0;
    return round_up(bytes, PAGE);
}

void remember_import(CUdeviceptr pointer, uint64_t bytes, CUcontext owner) {
    int card = current_card();
    if (card == NO_CARD || bytes == 0)
        return;
    if (blocks_put((block_t){pointer, bytes, (uint64_t)(uintptr_t)owner, 1, (int8_t)card, IMPORT}))
        return;
    upkeep_import(card, bytes);
    atomic_store(&is_used, 1);
}

int forget_import(CUdeviceptr pointer, block_t *block) {
    if (!atomic_load_explicit(&is_used, memory_order_relaxed) || !blocks_drop(IMPORT, pointer, block))
        return 0;
    upkeep_forget_import(block->card, block->bytes);
    return 1;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
    CUcontext context = NULL;
    CUresult result = CALL(cuIpcOpenMemHandle_v2, pointer, handle, flags);
    if (result == CUDA_SUCCESS && real.cuCtxGetCurrent(&context) == CUDA_SUCCESS)
        remember_import(*pointer, bytes_at(*pointer), context);
    return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
    block_t block;
    CUresult result = CALL(cuIpcCloseMemHandle, pointer);
    if (result == CUDA_SUCCESS)
        forget_import(pointer, &block);
    return result;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, void *exported) {
    CUresult result = CALL(cuMemPoolImportPointer, pointer, pool, exported);
    if (result == CUDA_SUCCESS)
        remember_import(*pointer, bytes_at(*pointer), NULL);
    return result;
}

/* What was exported here comes back as the same handle, once more in use. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *exported, int type) {
    CUresult result = CALL(cuMemImportFromShareableHandle, handle, exported, type);
    if (result == CUDA_SUCCESS)
        blocks_hold(HANDLE, *handle);
    return result;
}
