/* A libcuda.so.1 that does nothing, at once: what a launch costs through it is what stands before it costs. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define VERSION 13000

static int something;           /* what handles point to */

static int give(void **handle) {
    *handle = &something;
    return 0;
}

/* Entries that only say that all is well. */
#define QUIET(name)                                                                                                    \
    API int name(void);                                                                                                \
    int name(void) {                                                                                                   \
        return 0;                                                                                                      \
    }

/* Entries that give a handle first. */
#define GIVING(name)                                                                                                   \
    API int name(void **handle);                                                                                       \
    int name(void **handle) {                                                                                          \
        return give(handle);                                                                                           \
    }

/* Entries that write zero to their second argument. */
#define ZERO_AT_SECOND(name)                                                                                           \
    API int name(void *ignored, int *value);                                                                           \
    int name(void *ignored, int *value) {                                                                              \
        (void)ignored;                                                                                                 \
        *value = 0;                                                                                                    \
        return 0;                                                                                                      \
    }

QUIET(cuInit)
QUIET(cuDevicePrimaryCtxRelease_v2)
QUIET(cuCtxSetCurrent)
QUIET(cuCtxPushCurrent_v2)
QUIET(cuCtxSynchronize)
QUIET(cuLaunchKernel)
QUIET(cuLaunchKernel_ptsz)
QUIET(cuLaunchKernelEx)
QUIET(cuLaunchKernelEx_ptsz)
QUIET(cuLaunchCooperativeKernel)
QUIET(cuLaunchCooperativeKernel_ptsz)
QUIET(cuLaunchHostFunc)
QUIET(cuGraphLaunch)
QUIET(cuGraphLaunch_ptsz)
QUIET(cuStreamDestroy_v2)
QUIET(cuStreamSynchronize)
QUIET(cuStreamQuery)
QUIET(cuStreamWaitEvent)
QUIET(cuStreamWaitValue32_v2)
QUIET(cuStreamWriteValue32_v2)
QUIET(cuThreadExchangeStreamCaptureMode)
QUIET(cuEventRecord)
QUIET(cuEventRecord_ptsz)
QUIET(cuEventQuery)
QUIET(cuEventSynchronize)
QUIET(cuEventDestroy_v2)
QUIET(cuMemFree_v2)
QUIET(cuMemFreeHost)
GIVING(cuDevicePrimaryCtxRetain)
GIVING(cuCtxGetCurrent)
GIVING(cuCtxPopCurrent_v2)
GIVING(cuModuleLoadData)
GIVING(cuModuleGetFunction)
GIVING(cuStreamCreate)
GIVING(cuStreamCreateWithPriority)
GIVING(cuEventCreate)
GIVING(cuMemHostAlloc)
ZERO_AT_SECOND(cuStreamIsCapturing)
ZERO_AT_SECOND(cuStreamIsCapturing_ptsz)

API int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version) {
    *version = VERSION;
    return 0;
}

API int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count) {
    *count = 1;
    return 0;
}

API int cuDeviceGet(int *device, int ordinal);
int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}

API int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device) {
    return cuDeviceGet(device, 0);
}

API int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)attribute, (void)device;
    *value = 1;
    return 0;
}

/* GPU-00000000-0000-0000-0000-000000000001 */
API int cuDeviceGetUuid_v2(unsigned char *uuid, int device);
int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    (void)device;
    memset(uuid, 0, 16);
    uuid[15] = 1;
    return 0;
}

API int cuDeviceGetUuid(unsigned char *uuid, int device);
int cuDeviceGetUuid(unsigned char *uuid, int device) {
    return cuDeviceGetUuid_v2(uuid, device);
}

API int cuStreamGetCtx(void *stream, void **context);
int cuStreamGetCtx(void *stream, void **context) {
    (void)stream;
    return give(context);
}

API int cuFuncGetName(const char **name, void *function);
int cuFuncGetName(const char **name, void *function) {
    (void)function;
    *name = "empty";
    return 0;
}

API int cuMemHostGetDevicePointer_v2(unsigned long long *pointer, void *host, unsigned int flags);
int cuMemHostGetDevicePointer_v2(unsigned long long *pointer, void *host, unsigned int flags) {
    (void)flags;
    *pointer = (uintptr_t)host;
    return 0;
}

/* As if nothing had been between them but a short kernel. */
API int cuEventElapsedTime(float *milliseconds, void *from, void *to);
int cuEventElapsedTime(float *milliseconds, void *from, void *to) {
    (void)from, (void)to;
    *milliseconds = 0.002f;
    return 0;
}
