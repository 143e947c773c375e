/* The driver's interface as far as the library touches it: types, codes and prototypes under the driver's own names.

   Structures are written down up to the last field that is read; the library only ever gets pointers to them. */

#ifndef TESSERA_CUDA_API_H
#define TESSERA_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

typedef enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_NOT_SUPPORTED = 801,
} CUresult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUmemPool_st *CUmemoryPool;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct {
    unsigned char bytes[16];
} CUuuid;

#define LOCATION_DEVICE 1
typedef struct {
    int type, id;
} CUmemLocation;

typedef struct {
    int type, handle_types;
    CUmemLocation location;
} CUmemAllocationProp;

typedef struct {
    int type, handle_types;
    CUmemLocation location;
} CUmemPoolProps;

#define POOL_RESERVED_NOW 5
#define POOL_USED_NOW 7

typedef struct {
    size_t width, height;
    int format;
    unsigned int channels;
} CUDA_ARRAY_DESCRIPTOR;

#define ARRAY_LAYERED 0x01
#define ARRAY_SPARSE 0x40
#define ARRAY_DEFERRED 0x80
typedef struct {
    size_t width, height, depth;
    int format;
    unsigned int channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef enum { NVML_SUCCESS = 0, NVML_ERROR_FUNCTION_NOT_FOUND = 13 } nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
} nvmlProcessInfo_t;

API CUresult cuInit(unsigned int flags);
API CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags);
API CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status);
API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
API CUresult cuDevicePrimaryCtxRelease(CUdevice device);
API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
API CUresult cuDevicePrimaryCtxReset(CUdevice device);
API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
API CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
API CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned int flags, CUdevice device);
API CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned int flags, CUdevice device);
API CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *is_active);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxGetDevice(CUdevice *device);

API CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes);
API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes);
API CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned int element);
API CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags);
API CUresult cuMemFree(CUdeviceptr_v1 pointer);
API CUresult cuMemFree_v2(CUdeviceptr pointer);

API CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream);
API CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream);
API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream);
API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream);
API CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
API CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream);
API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *wish);
API CUresult cuMemPoolDestroy(CUmemoryPool pool);
API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);

API CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *wish);
API CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *wish);
API CUresult cuArrayDestroy(CUarray array);
API CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *wish, unsigned int levels);
API CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);

API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *wish,
                         unsigned long long flags);
API CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address);
API CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                      unsigned long long flags);
API CUresult cuMemUnmap(CUdeviceptr address, size_t bytes);

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *processes);

#endif
