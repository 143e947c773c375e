/* What a program is told about its card: the limit as the size of it, and what the container holds as what is used.
   CUDA and NVML tell it from the same figures. */
#define _GNU_SOURCE
#include "memory.h"

typedef struct {
    uint64_t total, free, used;
} view_t;

static uint64_t least(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

/* From what the driver says of the whole card. Returns 0 where nothing limits it and that is what the program is told.
   Never more than the card itself has, beside what may spill into the host's memory, nor less than nothing after a
   limit was lowered. */
static int look(int card, uint64_t card_total, uint64_t card_free, view_t *view) {
    uint64_t limit = card == NO_CARD ? NO_LIMIT : limit_of(card);
    if (limit == NO_LIMIT)
        return 0;
    adopt_context(card);
    upkeep_keep_up(card, limit);
    settle_pools(card);
    uint64_t total = least(limit, card_total), used = least(region_used(card), total);
    uint64_t spill = spill_limit_of(card), spilled = spill ? least(region_used(card_of_spill(card)), spill) : 0;
    *view = (view_t){total + spill, least(card_free, total - used) + spill - spilled, used + spilled};
    return 1;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    view_t view;
    CUresult result = CALL(cuMemGetInfo_v2, free_bytes, total_bytes);
    if (result == CUDA_SUCCESS && look(current_card(), *total_bytes, *free_bytes, &view)) {
        *total_bytes = view.total;
        *free_bytes = view.free;
    }
    return result;
}

/* The first versions have no room for more than 4 GiB. */
CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total_bytes) {
    size_t free, total;
    CUresult result = CALL(cuMemGetInfo, free_bytes, total_bytes);
    if (result == CUDA_SUCCESS && cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS) {
        *free_bytes = (unsigned int)least(free, UINT32_MAX);
        *total_bytes = (unsigned int)least(total, UINT32_MAX);
    }
    return result;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device) {
    size_t total;
    CUresult result = CALL(cuDeviceTotalMem, bytes, device);
    if (result == CUDA_SUCCESS && cuDeviceTotalMem_v2(&total, device) == CUDA_SUCCESS)
        *bytes = (unsigned int)least(total, UINT32_MAX);
    return result;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    CUresult result = CALL(cuDeviceTotalMem_v2, bytes, device);
    int card = result == CUDA_SUCCESS ? card_of_device(device) : NO_CARD;
    if (card != NO_CARD)
        *bytes = least(*bytes, limit_of(card)) + spill_limit_of(card);
    return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    view_t view;
    if (load_nvml() || real.nvmlDeviceGetMemoryInfo == NULL)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlReturn_t result = real.nvmlDeviceGetMemoryInfo(device, memory);
    if (result == NVML_SUCCESS && look(card_of_handle(device), memory->total, memory->free, &view))
        *memory = (nvmlMemory_t){view.total, view.free, view.used};
    return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    view_t view;
    if (load_nvml() || real.nvmlDeviceGetMemoryInfo_v2 == NULL)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlReturn_t result = real.nvmlDeviceGetMemoryInfo_v2(device, memory);
    if (result == NVML_SUCCESS && look(card_of_handle(device), memory->total, memory->free, &view))
        *memory = (nvmlMemory_v2_t){memory->version, view.total, 0, view.free, view.used};
    return result;
}
