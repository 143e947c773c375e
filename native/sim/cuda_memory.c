/* Memory by address: allocated, freed, and asked about. */
#define _GNU_SOURCE
#include "cuda_blocks.h"
#include "cuda_graphs.h"

#define PITCH_GRAIN 512
#define GLOBAL_ATTACH 1
#define HOST_ATTACH 2

enum {
    ASK_CONTEXT = 1,
    ASK_MEMORY_TYPE = 2,
    ASK_DEVICE_POINTER = 3,
    ASK_HOST_POINTER = 4,
    ASK_MANAGED = 8,
    ASK_DEVICE = 9,
    ASK_START = 11,
    ASK_SIZE = 12,
};
enum { HOST_TYPE = 1, DEVICE_TYPE = 2 };

API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    return make_block(pointer, bytes, NULL);
}

API CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
    if (flags != GLOBAL_ATTACH && flags != HOST_ATTACH)
        return INVALID_VALUE;
    CUresult result = check_unsafe();
    return result == SUCCESS ? make_block_of(MANAGED, pointer, bytes, NULL, -1) : result;
}

API CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned int grain) {
    if (pitch == NULL || (grain != 4 && grain != 8 && grain != 16) || (height && width > SIZE_MAX / 2 / height))
        return INVALID_VALUE;
    *pitch = round_up(width, PITCH_GRAIN);
    return make_block(pointer, *pitch * height, NULL);
}

API CUresult cuMemFree_v2(CUdeviceptr pointer) {
    CUresult result = pointer ? check_unsafe() : SUCCESS;
    return pointer && result == SUCCESS ? free_block_at(pointer) : result;
}

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    if (free_bytes == NULL || total_bytes == NULL)
        return INVALID_VALUE;
    if (current_context() == NULL)
        return no_context();
    if (current_context()->fault != SUCCESS)
        return current_context()->fault;
    *total_bytes = current_context()->card->memory_bytes;
    *free_bytes = *total_bytes - machine_used(current_context()->card);
    return SUCCESS;
}

API CUresult cuMemGetAddressRange_v2(CUdeviceptr *begin, size_t *bytes, CUdeviceptr pointer) {
    pthread_mutex_lock(&driver.mutex);
    const block_t *block = find_block(pointer);
    if (block && begin)
        *begin = block->begin;
    if (block && bytes)
        *bytes = block->asked;
    pthread_mutex_unlock(&driver.mutex);
    return block ? SUCCESS : NOT_FOUND;
}

/* ---- what a pointer is ---------------------------------------------------------------------------------------- */

static CUresult tell_of_block(void *value, int attribute, CUdeviceptr pointer, const block_t *block) {
    switch (attribute) {
    case ASK_CONTEXT:
        *(CUcontext *)value = block->context;
        return SUCCESS;
    case ASK_MEMORY_TYPE:
        *(unsigned int *)value = DEVICE_TYPE;
        return SUCCESS;
    case ASK_DEVICE_POINTER:
        *(CUdeviceptr *)value = pointer;
        return SUCCESS;
    case ASK_MANAGED:
        *(int *)value = block->source == MANAGED;
        return SUCCESS;
    case ASK_DEVICE:
        *(int *)value = block->context->device;
        return SUCCESS;
    case ASK_START:
        *(CUdeviceptr *)value = block->begin;
        return SUCCESS;
    case ASK_SIZE:
        *(size_t *)value = block->asked;
        return SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

static CUresult tell_of_host(void *value, int attribute, CUdeviceptr pointer) {
    switch (attribute) {
    case ASK_MEMORY_TYPE:
        *(unsigned int *)value = HOST_TYPE;
        return SUCCESS;
    case ASK_DEVICE_POINTER:
    case ASK_HOST_POINTER:
        *(CUdeviceptr *)value = pointer;
        return SUCCESS;
    case ASK_MANAGED:
        *(int *)value = 0;
        return SUCCESS;
    case ASK_DEVICE:
        *(int *)value = current_context() ? current_context()->device : 0;
        return SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

/* What is neither memory of a card nor known to the driver is nothing that it could tell of. */
API CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer) {
    if (value == NULL)
        return INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    const block_t *block = find_block(pointer);
    CUresult result = block ? tell_of_block(value, attribute, pointer, block) : INVALID_VALUE;
    pthread_mutex_unlock(&driver.mutex);
    if (block == NULL && is_host_memory((const void *)(uintptr_t)pointer))
        result = tell_of_host(value, attribute, pointer);
    return result;
}
