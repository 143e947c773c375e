/* Host memory that a card can reach: allocated for it, or registered. */
#define _GNU_SOURCE
#include "cuda_graphs.h"
#include "cuda_queue.h"

#include <stdlib.h>
#include <sys/mman.h>

typedef struct range {
    char *begin;
    size_t bytes;
    unsigned int flags;
    int is_registered;
    struct range *next;
} range_t;

static range_t *ranges;         /* guarded by the driver's lock */

void forget_host_memory(void) {
    ranges = NULL;
}

static int has(const range_t *range, const char *address) {
    return address >= range->begin && address < range->begin + range->bytes;
}

/* With the driver locked. */
static range_t **find_range(const void *address) {
    range_t **link = &ranges;
    while (*link && !has(*link, address))
        link = &(*link)->next;
    return link;
}

int is_host_memory(const void *address) {
    pthread_mutex_lock(&driver.mutex);
    int is_known = *find_range(address) != NULL;
    pthread_mutex_unlock(&driver.mutex);
    return is_known;
}

static CUresult add_range(void *begin, size_t bytes, unsigned int flags, int is_registered) {
    range_t *range = malloc(sizeof *range);
    if (range == NULL)
        return OUT_OF_MEMORY;
    pthread_mutex_lock(&driver.mutex);
    *range = (range_t){begin, bytes, flags, is_registered, ranges};
    ranges = range;
    pthread_mutex_unlock(&driver.mutex);
    return SUCCESS;
}

/* Returns how many bytes it had; 0 if there is none that begins there. */
static size_t remove_range(const void *begin, int is_registered) {
    size_t bytes = 0;
    pthread_mutex_lock(&driver.mutex);
    range_t **link = find_range(begin), *range = *link;
    if (range && range->begin == begin && range->is_registered == is_registered) {
        bytes = range->bytes;
        *link = range->next;
        free(range);
    }
    pthread_mutex_unlock(&driver.mutex);
    return bytes;
}

API CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
    CUcontext context;
    CUresult result = pointer && bytes ? check_context(&context) : INVALID_VALUE;
    if (result == SUCCESS)
        result = check_unsafe();
    if (result != SUCCESS)
        return result;
    void *space = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (space == MAP_FAILED)
        return OUT_OF_MEMORY;
    *pointer = space;
    return add_range(space, bytes, flags, 0);
}

API CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) {
    return cuMemHostAlloc(pointer, bytes, 0);
}

API CUresult cuMemFreeHost(void *pointer) {
    size_t bytes = remove_range(pointer, 0);
    if (bytes == 0)
        return INVALID_VALUE;
    munmap(pointer, bytes);
    return SUCCESS;
}

API CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags) {
    CUcontext context;
    CUresult result = pointer && bytes ? check_context(&context) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    return is_host_memory(pointer) ? HOST_MEMORY_ALREADY_REGISTERED : add_range(pointer, bytes, flags, 1);
}

API CUresult cuMemHostUnregister(void *pointer) {
    return remove_range(pointer, 1) ? SUCCESS : HOST_MEMORY_NOT_REGISTERED;
}

API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *pointer, unsigned int flags) {
    if (device == NULL || flags || !is_host_memory(pointer))
        return INVALID_VALUE;
    *device = (CUdeviceptr)(uintptr_t)pointer;
    return SUCCESS;
}

API CUresult cuMemHostGetFlags(unsigned int *flags, void *pointer) {
    CUresult result = INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    const range_t *range = *find_range(pointer);
    if (flags && range) {
        *flags = range->flags;
        result = SUCCESS;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}
