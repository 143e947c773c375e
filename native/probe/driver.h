/* The driver as the probes have it: its entries by name, from whichever libcuda.so.1 is found, a card's or a simulated
   one. Only what they use is declared. */

#ifndef TESSERA_PROBE_DRIVER_H
#define TESSERA_PROBE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned long long pointer_t;

typedef struct {
    unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void *stream;
    void *attributes;
    unsigned int attribute_count;
} launch_t;

typedef struct {
    int type, handle_types, location_type, location_id;
    char more[72];
} memory_wish_t;                /* of allocations by handle and of pools */

typedef struct {
    memory_wish_t pool;
    const void *access;
    size_t access_count, bytes;
    pointer_t pointer;
} alloc_node_t;

typedef struct {
    size_t width, height;
    int format;
    unsigned int channels;
} array_t;

typedef struct {
    char bytes[64];
} ipc_t;

/* name, parameters */
#define ENTRIES(ENTRY)                                                                                                 \
    ENTRY(cuInit, (unsigned int))                                                                                      \
    ENTRY(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *))                                          \
    ENTRY(cuDeviceGetAttribute, (int *, int, int))                                                                     \
    ENTRY(cuDevicePrimaryCtxRetain, (void **, int))                                                                    \
    ENTRY(cuCtxSetCurrent, (void *))                                                                                   \
    ENTRY(cuCtxPopCurrent_v2, (void **))                                                                               \
    ENTRY(cuCtxSynchronize, (void))                                                                                    \
    ENTRY(cuModuleLoadData, (void **, const void *))                                                                   \
    ENTRY(cuModuleGetFunction, (void **, void *, const char *))                                                        \
    ENTRY(cuModuleUnload, (void *))                                                                                    \
    ENTRY(cuFuncGetName, (const char **, void *))                                                                      \
    ENTRY(cuLaunchKernel, (void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, \
                           unsigned int, void *, void **, void **))                                                    \
    ENTRY(cuLaunchKernelEx, (const launch_t *, void *, void **, void **))                                              \
    ENTRY(cuLaunchCooperativeKernel, (void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,    \
                                      unsigned int, unsigned int, void *, void **))                                    \
    ENTRY(cuLaunchHostFunc, (void *, void (*)(void *), void *))                                                        \
    ENTRY(cuStreamCreate, (void **, unsigned int))                                                                     \
    ENTRY(cuStreamDestroy_v2, (void *))                                                                                \
    ENTRY(cuStreamSynchronize, (void *))                                                                               \
    ENTRY(cuStreamQuery, (void *))                                                                                     \
    ENTRY(cuStreamWaitEvent, (void *, void *, unsigned int))                                                           \
    ENTRY(cuStreamWaitValue32_v2, (void *, pointer_t, uint32_t, unsigned int))                                         \
    ENTRY(cuStreamWriteValue32_v2, (void *, pointer_t, uint32_t, unsigned int))                                        \
    ENTRY(cuStreamIsCapturing, (void *, int *))                                                                        \
    ENTRY(cuStreamBeginCapture_v2, (void *, int))                                                                      \
    ENTRY(cuStreamEndCapture, (void *, void **))                                                                       \
    ENTRY(cuThreadExchangeStreamCaptureMode, (int *))                                                                  \
    ENTRY(cuGraphCreate, (void **, unsigned int))                                                                      \
    ENTRY(cuGraphDestroy, (void *))                                                                                    \
    ENTRY(cuGraphGetNodes, (void *, void **, size_t *))                                                                \
    ENTRY(cuGraphAddMemAllocNode, (void **, void *, void **, size_t, alloc_node_t *))                                  \
    ENTRY(cuGraphAddMemFreeNode, (void **, void *, void **, size_t, pointer_t))                                        \
    ENTRY(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                                          \
    ENTRY(cuGraphExecDestroy, (void *))                                                                                \
    ENTRY(cuGraphLaunch, (void *, void *))                                                                             \
    ENTRY(cuDeviceGetGraphMemAttribute, (int, int, void *))                                                            \
    ENTRY(cuDeviceGraphMemTrim, (int))                                                                                 \
    ENTRY(cuEventCreate, (void **, unsigned int))                                                                      \
    ENTRY(cuEventDestroy_v2, (void *))                                                                                 \
    ENTRY(cuEventRecord, (void *, void *))                                                                             \
    ENTRY(cuEventQuery, (void *))                                                                                      \
    ENTRY(cuEventSynchronize, (void *))                                                                                \
    ENTRY(cuEventElapsedTime, (float *, void *, void *))                                                               \
    ENTRY(cuMemGetInfo_v2, (size_t *, size_t *))                                                                       \
    ENTRY(cuMemAlloc_v2, (pointer_t *, size_t))                                                                        \
    ENTRY(cuMemAllocPitch_v2, (pointer_t *, size_t *, size_t, size_t, unsigned int))                                   \
    ENTRY(cuMemAllocManaged, (pointer_t *, size_t, unsigned int))                                                      \
    ENTRY(cuMemFree_v2, (pointer_t))                                                                                   \
    ENTRY(cuMemHostAlloc, (void **, size_t, unsigned int))                                                             \
    ENTRY(cuMemFreeHost, (void *))                                                                                     \
    ENTRY(cuMemHostRegister_v2, (void *, size_t, unsigned int))                                                        \
    ENTRY(cuMemHostUnregister, (void *))                                                                               \
    ENTRY(cuMemHostGetDevicePointer_v2, (pointer_t *, void *, unsigned int))                                           \
    ENTRY(cuMemcpyHtoD_v2, (pointer_t, const void *, size_t))                                                          \
    ENTRY(cuMemcpyDtoH_v2, (void *, pointer_t, size_t))                                                                \
    ENTRY(cuMemcpyDtoD_v2, (pointer_t, pointer_t, size_t))                                                             \
    ENTRY(cuMemcpyHtoDAsync_v2, (pointer_t, const void *, size_t, void *))                                             \
    ENTRY(cuMemcpyDtoHAsync_v2, (void *, pointer_t, size_t, void *))                                                   \
    ENTRY(cuMemcpyAsync, (pointer_t, pointer_t, size_t, void *))                                                       \
    ENTRY(cuMemsetD8_v2, (pointer_t, unsigned char, size_t))                                                           \
    ENTRY(cuMemsetD32_v2, (pointer_t, unsigned int, size_t))                                                           \
    ENTRY(cuMemAllocAsync, (pointer_t *, size_t, void *))                                                              \
    ENTRY(cuMemFreeAsync, (pointer_t, void *))                                                                         \
    ENTRY(cuMemAllocFromPoolAsync, (pointer_t *, size_t, void *, void *))                                              \
    ENTRY(cuMemPoolCreate, (void **, const memory_wish_t *))                                                           \
    ENTRY(cuMemPoolDestroy, (void *))                                                                                  \
    ENTRY(cuMemPoolTrimTo, (void *, size_t))                                                                           \
    ENTRY(cuMemPoolGetAttribute, (void *, int, void *))                                                                \
    ENTRY(cuDeviceGetDefaultMemPool, (void **, int))                                                                   \
    ENTRY(cuArrayCreate_v2, (void **, const array_t *))                                                                \
    ENTRY(cuArrayDestroy, (void *))                                                                                    \
    ENTRY(cuMemGetAllocationGranularity, (size_t *, const memory_wish_t *, int))                                       \
    ENTRY(cuMemCreate, (pointer_t *, size_t, const memory_wish_t *, unsigned long long))                               \
    ENTRY(cuMemRelease, (pointer_t))                                                                                   \
    ENTRY(cuMemExportToShareableHandle, (void *, pointer_t, int, unsigned long long))                                  \
    ENTRY(cuMemImportFromShareableHandle, (pointer_t *, void *, int))                                                  \
    ENTRY(cuMemAddressReserve, (pointer_t *, size_t, size_t, pointer_t, unsigned long long))                           \
    ENTRY(cuMemMap, (pointer_t, size_t, size_t, pointer_t, unsigned long long))                                        \
    ENTRY(cuMemUnmap, (pointer_t, size_t))                                                                             \
    ENTRY(cuPointerGetAttribute, (void *, int, pointer_t))                                                             \
    ENTRY(cuIpcGetMemHandle, (ipc_t *, pointer_t))                                                                     \
    ENTRY(cuIpcOpenMemHandle_v2, (pointer_t *, ipc_t, unsigned int))

#define AS_FIELD(name, parameters) int(*name) parameters;
typedef struct {
    ENTRIES(AS_FIELD)
} cuda_t;

/* Valid after find_driver. */
extern cuda_t cuda;

/* Ends the program where there is no driver, or one that lacks an entry. */
void find_driver(void);

/* An entry that the driver exports, or NULL. */
void *find_entry(const char *name);

/* Find the driver and make the context of the first card current. */
void enter_context(void);

/* `spin` is busy for as many nanoseconds as its parameter says, `empty` for as few as possible, `trap` writes where
   nobody may. */
extern const char kernels[];
void *find_kernel(const char *name);

int64_t now_ns(void);
void fail(const char *what, int code);

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_)                                                                                                     \
            fail(#call, code_);                                                                                        \
    } while (0)

#endif
