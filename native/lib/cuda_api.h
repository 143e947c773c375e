/* The driver's interface as far as the library touches it: types, codes and prototypes under the driver's own names.

   Structures are written down up to the last field that is read; the library only ever gets pointers to them. */

#ifndef TESSERA_CUDA_API_H
#define TESSERA_CUDA_API_H

#include "../graph_types.h"
#include "../nvml_types.h"

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
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUstream_st *CUstream;
typedef struct CUmemPool_st *CUmemoryPool;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct {
    unsigned char bytes[64];
} CUipcMemHandle;
typedef struct {
    unsigned char bytes[16];
} CUuuid;

#define EVENT_WITHOUT_TIME 2
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
    unsigned char rest[72];
} CUmemPoolProps;

typedef struct {
    CUmemPoolProps pool;
    const void *access;
    size_t access_count, bytes;
    CUdeviceptr pointer;
} CUDA_MEM_ALLOC_NODE_PARAMS;

#define POOL_RESERVED_NOW 5
#define POOL_USED_NOW 7

typedef struct {
    size_t width, height;
    int format;
    unsigned int channels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    unsigned int width, height;
    int format;
    unsigned int channels;
} CUDA_ARRAY_DESCRIPTOR_v1;

#define ARRAY_LAYERED 0x01
#define ARRAY_SPARSE 0x40
#define ARRAY_DEFERRED 0x80
typedef struct {
    size_t width, height, depth;
    int format;
    unsigned int channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
    unsigned int width, height, depth;
    int format;
    unsigned int channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
} nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
    unsigned long long protected_used;
} nvmlProcessDetail_t;

typedef struct {
    unsigned int version, mode, count;
    nvmlProcessDetail_t *rows;
} nvmlProcessDetailList_t;

typedef struct {
    unsigned long long at_us;
    unsigned int pid, processors, memory, encoder, decoder, jpeg, flow;
} nvmlProcessUtilizationInfo_t;

typedef struct {
    unsigned int version, count;
    unsigned long long since_us;
    nvmlProcessUtilizationInfo_t *rows;
} nvmlProcessesUtilizationInfo_t;

API CUresult cuInit(unsigned int flags);
API CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags);
API CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status);
API CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device);
API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
API CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total_bytes);
API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
API CUresult cuDevicePrimaryCtxRelease(CUdevice device);
API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
API CUresult cuDevicePrimaryCtxReset(CUdevice device);
API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
API CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device);
API CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
API CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned int flags, CUdevice device);
API CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned int flags, CUdevice device);
API CUresult cuCtxDestroy(CUcontext context);
API CUresult cuCtxDestroy_v2(CUcontext context);
API CUresult cuGreenCtxDestroy(CUgreenCtx green);
CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green);
API CUresult cuCtxSetLimit(int which, size_t bytes);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *is_active);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxGetDevice(CUdevice *device);

API CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes);
API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes);
API CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width, unsigned int height,
                             unsigned int element);
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
API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
API CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type);
API CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type);

API CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *wish);
API CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *wish);
API CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *wish);
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
CUresult cuMemGetAddressRange_v2(CUdeviceptr *begin, size_t *bytes, CUdeviceptr pointer);
CUresult cuMemFreeHost(void *pointer);

API CUresult cuMemExportToShareableHandle(void *exported, CUmemGenericAllocationHandle handle, int type,
                                          unsigned long long flags);
API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *exported, int type);
API CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer);
API CUresult cuIpcCloseMemHandle(CUdeviceptr pointer);

API CUresult cuModuleLoad(CUmodule *module, const char *path);
API CUresult cuModuleLoadData(CUmodule *module, const void *image);
API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, int *options, void **values);
API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image);
API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit, void **jit_values,
                               unsigned int jit_count, int *options, void **values, unsigned int count);
API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *jit, void **jit_values,
                                   unsigned int jit_count, int *options, void **values, unsigned int count);

API CUresult cuGraphInstantiate(CUgraphExec *made, CUgraph graph, CUgraphNode *failed, char *log, size_t room);
API CUresult cuGraphInstantiate_v2(CUgraphExec *made, CUgraph graph, CUgraphNode *failed, char *log, size_t room);
API CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph graph, unsigned long long flags);
API CUresult cuGraphInstantiateWithParams(CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *wish);
API CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *wish);
API CUresult cuGraphExecDestroy(CUgraphExec graph);
API CUresult cuGraphUpload(CUgraphExec graph, CUstream stream);
API CUresult cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream);
API CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphNodeGetType(CUgraphNode node, int *type);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *wish);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *pointer);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph);
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value);

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);

#define NVML_PROCESS_LIST(name, row_t) API nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, row_t *rows);
NVML_PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
NVML_PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_t)
NVML_PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
NVML_PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
NVML_PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_t)
NVML_PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
NVML_PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
NVML_PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_t)
NVML_PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)
API nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *wish);
API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates);
API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                 unsigned int *count, unsigned long long since_us);
API nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *wish);
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor);

#endif
