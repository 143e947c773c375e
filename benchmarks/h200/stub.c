/* A libcuda.so.1 that does nothing and says that all went well, so that what stands before it is all that is timed.

   What a library may ask beside a launch answers as an idle card would: one device, everything done, no time taken. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define DONE 0
#define NOTHING(name)                                                                                                  \
    int name(void) {                                                                                                   \
        return DONE;                                                                                                   \
    }
#define GIVES(name, value)                                                                                             \
    int name(void **place) {                                                                                           \
        *place = (void *)(value);                                                                                      \
        return DONE;                                                                                                   \
    }

NOTHING(cuInit)
NOTHING(cuLaunchKernel)
NOTHING(cuLaunchKernel_ptsz)
NOTHING(cuLaunchKernelEx)
NOTHING(cuLaunchKernelEx_ptsz)
NOTHING(cuLaunchCooperativeKernel)
NOTHING(cuGraphLaunch)
NOTHING(cuCtxSetCurrent)
NOTHING(cuCtxPushCurrent_v2)
NOTHING(cuCtxSynchronize)
NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuEventRecord)
NOTHING(cuEventRecordWithFlags)
NOTHING(cuEventQuery)
NOTHING(cuEventSynchronize)
NOTHING(cuEventDestroy_v2)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuStreamSynchronize)
NOTHING(cuStreamQuery)
NOTHING(cuStreamWaitEvent)
NOTHING(cuStreamWaitValue32_v2)
NOTHING(cuStreamWriteValue32_v2)
NOTHING(cuThreadExchangeStreamCaptureMode)
NOTHING(cuMemFreeHost)
GIVES(cuDevicePrimaryCtxRetain, 1)
GIVES(cuCtxGetCurrent, 1)
GIVES(cuCtxPopCurrent_v2, 1)
GIVES(cuModuleLoadData, 1)
GIVES(cuModuleGetFunction, 1)
GIVES(cuStreamCreate, 1)
GIVES(cuStreamCreateWithPriority, 1)
GIVES(cuEventCreate, 1)

int cuDriverGetVersion(int *version) {
    *version = 13000;
    return DONE;
}

int cuDeviceGetCount(int *count) {
    *count = 1;
    return DONE;
}

int cuDeviceGet(int *device, int number) {
    *device = number;
    return DONE;
}

int cuCtxGetDevice(int *device) {
    *device = 0;
    return DONE;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)attribute, (void)device;
    *value = 1;
    return DONE;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    (void)device;
    memset(uuid, 0x5a, 16);
    return DONE;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = (size_t)80 << 30;
    return DONE;
}

int cuMemGetInfo_v2(size_t *free, size_t *total) {
    *free = *total = (size_t)80 << 30;
    return DONE;
}

int cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    static char room[4096];
    (void)bytes, (void)flags;
    *pointer = room;
    return DONE;
}

int cuMemHostGetDevicePointer_v2(unsigned long long *address, void *pointer, unsigned flags) {
    (void)flags;
    *address = (unsigned long long)pointer;
    return DONE;
}

int cuEventElapsedTime(float *milliseconds, void *begin, void *end) {
    (void)begin, (void)end;
    *milliseconds = 0;
    return DONE;
}

int cuStreamIsCapturing(void *stream, int *status) {
    (void)stream;
    *status = 0;
    return DONE;
}

int cuStreamGetCaptureInfo_v2(void *stream, int *status) {
    (void)stream;
    *status = 0;
    return DONE;
}

int cuStreamGetCtx(void *stream, void **context) {
    (void)stream;
    *context = (void *)1;
    return DONE;
}

int cuGetProcAddress_v2(const char *name, void **entry, int version, unsigned long long flags, int *found) {
    (void)version, (void)flags;
    *entry = dlsym(RTLD_DEFAULT, name);
    if (found)
        *found = *entry == NULL;
    return *entry ? DONE : 500;
}
