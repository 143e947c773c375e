/* cuGetProcAddress: entries by the name without a version, for the CUDA version that a program was built for, and for
   streams of threads where it asks for them. What it finds are the addresses that the library exports. */
#define _GNU_SOURCE
#include "cuda.h"

#include <string.h>

#define PER_THREAD 2
#define VERSION_NOT_SUFFICIENT 2
#define SYMBOL_NOT_FOUND 1

API CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags);
API CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status);

/* name, since which version, entry, entry for streams of threads */
#define ROWS(ROW)                                                                                                      \
    ROW("cuInit", 2000, cuInit, cuInit)                                                                                \
    ROW("cuDriverGetVersion", 2020, cuDriverGetVersion, cuDriverGetVersion)                                            \
    ROW("cuDeviceGet", 2000, cuDeviceGet, cuDeviceGet)                                                                 \
    ROW("cuDeviceGetCount", 2000, cuDeviceGetCount, cuDeviceGetCount)                                                  \
    ROW("cuDeviceTotalMem", 3020, cuDeviceTotalMem_v2, cuDeviceTotalMem_v2)                                            \
    ROW("cuDevicePrimaryCtxRetain", 7000, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)                          \
    ROW("cuDevicePrimaryCtxRelease", 7000, cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease)                       \
    ROW("cuDevicePrimaryCtxRelease", 11000, cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease_v2)                \
    ROW("cuCtxCreate", 3020, cuCtxCreate_v2, cuCtxCreate_v2)                                                           \
    ROW("cuCtxDestroy", 4000, cuCtxDestroy_v2, cuCtxDestroy_v2)                                                        \
    ROW("cuCtxSetCurrent", 4000, cuCtxSetCurrent, cuCtxSetCurrent)                                                     \
    ROW("cuCtxGetDevice", 2000, cuCtxGetDevice, cuCtxGetDevice)                                                        \
    ROW("cuMemGetInfo", 3020, cuMemGetInfo_v2, cuMemGetInfo_v2)                                                        \
    ROW("cuMemAlloc", 3020, cuMemAlloc_v2, cuMemAlloc_v2)                                                              \
    ROW("cuMemAllocPitch", 3020, cuMemAllocPitch_v2, cuMemAllocPitch_v2)                                               \
    ROW("cuMemAllocManaged", 6000, cuMemAllocManaged, cuMemAllocManaged)                                               \
    ROW("cuMemFree", 3020, cuMemFree_v2, cuMemFree_v2)                                                                 \
    ROW("cuMemAllocAsync", 11020, cuMemAllocAsync, cuMemAllocAsync_ptsz)                                               \
    ROW("cuMemAllocFromPoolAsync", 11020, cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz)                       \
    ROW("cuMemFreeAsync", 11020, cuMemFreeAsync, cuMemFreeAsync_ptsz)                                                  \
    ROW("cuMemPoolCreate", 11020, cuMemPoolCreate, cuMemPoolCreate)                                                    \
    ROW("cuMemPoolDestroy", 11020, cuMemPoolDestroy, cuMemPoolDestroy)                                                 \
    ROW("cuMemPoolTrimTo", 11020, cuMemPoolTrimTo, cuMemPoolTrimTo)                                                    \
    ROW("cuArrayCreate", 3020, cuArrayCreate_v2, cuArrayCreate_v2)                                                     \
    ROW("cuArray3DCreate", 3020, cuArray3DCreate_v2, cuArray3DCreate_v2)                                               \
    ROW("cuMipmappedArrayCreate", 5000, cuMipmappedArrayCreate, cuMipmappedArrayCreate)                                \
    ROW("cuMemCreate", 10020, cuMemCreate, cuMemCreate)                                                                \
    ROW("cuMemRelease", 10020, cuMemRelease, cuMemRelease)                                                             \
    ROW("cuGetProcAddress", 11030, cuGetProcAddress, cuGetProcAddress)                                                 \
    ROW("cuGetProcAddress", 12000, cuGetProcAddress_v2, cuGetProcAddress_v2)

/* Only their addresses are wanted here, so what they take is not said again. */
#define ADDRESS(entry) extern API void entry(void);
ADDRESS(cuArray3DCreate_v2)
ADDRESS(cuArrayCreate_v2)
ADDRESS(cuCtxCreate_v2)
ADDRESS(cuCtxDestroy_v2)
ADDRESS(cuCtxGetDevice)
ADDRESS(cuCtxSetCurrent)
ADDRESS(cuDeviceGet)
ADDRESS(cuDeviceGetCount)
ADDRESS(cuDevicePrimaryCtxRelease)
ADDRESS(cuDevicePrimaryCtxRelease_v2)
ADDRESS(cuDevicePrimaryCtxRetain)
ADDRESS(cuDeviceTotalMem_v2)
ADDRESS(cuDriverGetVersion)
ADDRESS(cuInit)
ADDRESS(cuMemAllocAsync)
ADDRESS(cuMemAllocAsync_ptsz)
ADDRESS(cuMemAllocFromPoolAsync)
ADDRESS(cuMemAllocFromPoolAsync_ptsz)
ADDRESS(cuMemAllocManaged)
ADDRESS(cuMemAllocPitch_v2)
ADDRESS(cuMemAlloc_v2)
ADDRESS(cuMemCreate)
ADDRESS(cuMemFreeAsync)
ADDRESS(cuMemFreeAsync_ptsz)
ADDRESS(cuMemFree_v2)
ADDRESS(cuMemGetInfo_v2)
ADDRESS(cuMemPoolCreate)
ADDRESS(cuMemPoolDestroy)
ADDRESS(cuMemPoolTrimTo)
ADDRESS(cuMemRelease)
ADDRESS(cuMipmappedArrayCreate)

#define AS_ROW(name, since, entry, per_thread) {name, since, (void *)(uintptr_t)&entry, (void *)(uintptr_t)&per_thread},

static const struct {
    const char *name;
    int since;
    void *entry, *per_thread;
} rows[] = {ROWS(AS_ROW)};

/* The newest one that both the program and the driver know. */
static CUresult look_up(const char *name, void **entry, int version, uint64_t flags, int *status) {
    int best = 0;
    if (name == NULL || entry == NULL)
        return INVALID_VALUE;
    *entry = NULL;
    *status = SYMBOL_NOT_FOUND;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        if (strcmp(rows[row].name, name) != 0)
            continue;
        if (rows[row].since > version || rows[row].since > driver_version()) {
            *status = best ? 0 : VERSION_NOT_SUFFICIENT;
            continue;
        }
        if (rows[row].since < best)
            continue;
        best = rows[row].since;
        *entry = flags & PER_THREAD ? rows[row].per_thread : rows[row].entry;
        *status = 0;
    }
    return *entry ? SUCCESS : NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags) {
    int status;
    return look_up(name, entry, version, flags, &status);
}

CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status) {
    int ignored;
    return look_up(name, entry, version, flags, status ? status : &ignored);
}
