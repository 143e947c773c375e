/* The driver's interface to launch work and to wait for it, as far as the library touches it. */

#ifndef TESSERA_LAUNCH_API_H
#define TESSERA_LAUNCH_API_H

#include "../copy_types.h"
#include "cuda_api.h"

#define CUDA_ERROR_NOT_READY ((CUresult)600)
#define LEGACY_STREAM ((CUstream)1)
#define PER_THREAD_STREAM ((CUstream)2)
#define POINTER_MEMORY_TYPE 2
#define HOST_PORTABLE 1u
#define HOST_MAPPED 2u
#define WAIT_UNTIL_GREATER_OR_EQUAL 0u

typedef struct CUevent_st *CUevent;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

typedef struct {
    unsigned int grid[3], block[3], shared_bytes;
    CUstream stream;
} CUlaunchConfig;

typedef struct {
    CUfunction function;
    unsigned int grid[3], block[3], shared_bytes;
    CUstream stream;
    void **parameters;
} CUDA_LAUNCH_PARAMS;

#define LAUNCH_PARAMETERS                                                                                              \
    CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,          \
        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **parameters

API CUresult cuLaunchKernel(LAUNCH_PARAMETERS, void **extra);
API CUresult cuLaunchKernel_ptsz(LAUNCH_PARAMETERS, void **extra);
API CUresult cuLaunchKernelEx(const CUlaunchConfig *wish, CUfunction function, void **parameters, void **extra);
API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *wish, CUfunction function, void **parameters, void **extra);
API CUresult cuLaunchCooperativeKernel(LAUNCH_PARAMETERS);
API CUresult cuLaunchCooperativeKernel_ptsz(LAUNCH_PARAMETERS);
API CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *wishes, unsigned int count, unsigned int flags);
API CUresult cuLaunch(CUfunction function);
API CUresult cuLaunchGrid(CUfunction function, int width, int height);
API CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream);
API CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream);
API CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream);

/* Each of these is there twice: with the default stream of all, and with that of each thread. */
#define TWICE(name, other, ...)                                                                                        \
    API CUresult name(__VA_ARGS__);                                                                                    \
    API CUresult other(__VA_ARGS__)

TWICE(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
TWICE(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz, CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
TWICE(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz, void *to, CUdeviceptr from, size_t bytes, CUstream stream);
TWICE(cuMemcpyAsync, cuMemcpyAsync_ptsz, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
TWICE(cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz,
      CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count, void *manners, size_t *firsts,
      size_t manner_count, size_t *failed, CUstream stream);
TWICE(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz,
      CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count, void *manners, size_t *firsts,
      size_t manner_count, CUstream stream);
TWICE(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz,
      CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes, CUstream stream);
TWICE(cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz, const CUDA_MEMCPY2D *wish, CUstream stream);
TWICE(cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz, const CUDA_MEMCPY3D *wish, CUstream stream);
TWICE(cuMemsetD8Async, cuMemsetD8Async_ptsz, CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
TWICE(cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz,
      CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream);
TWICE(cuMemsetD16Async, cuMemsetD16Async_ptsz, CUdeviceptr to, unsigned short value, size_t count, CUstream stream);
TWICE(cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz,
      CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height, CUstream stream);
TWICE(cuMemsetD32Async, cuMemsetD32Async_ptsz, CUdeviceptr to, unsigned int value, size_t count, CUstream stream);
TWICE(cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz,
      CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream);

TWICE(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, CUdeviceptr to, CUdeviceptr from, size_t bytes);
TWICE(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, CUdeviceptr to, const void *from, size_t bytes);
TWICE(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, void *to, CUdeviceptr from, size_t bytes);
TWICE(cuMemcpy, cuMemcpy_ptds, CUdeviceptr to, CUdeviceptr from, size_t bytes);
TWICE(cuMemcpyPeer, cuMemcpyPeer_ptds, CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes);
TWICE(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, const CUDA_MEMCPY2D *wish);
TWICE(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, const CUDA_MEMCPY2D *wish);
TWICE(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, const CUDA_MEMCPY3D *wish);
TWICE(cuMemsetD8_v2, cuMemsetD8_v2_ptds, CUdeviceptr to, unsigned char value, size_t count);
TWICE(cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds,
      CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height);
TWICE(cuMemsetD16_v2, cuMemsetD16_v2_ptds, CUdeviceptr to, unsigned short value, size_t count);
TWICE(cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds,
      CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height);
TWICE(cuMemsetD32_v2, cuMemsetD32_v2_ptds, CUdeviceptr to, unsigned int value, size_t count);
TWICE(cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds,
      CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height);

API CUresult cuStreamSynchronize(CUstream stream);
API CUresult cuStreamSynchronize_ptsz(CUstream stream);
API CUresult cuEventSynchronize(CUevent event);
API CUresult cuCtxSynchronize(void);
API CUresult cuCtxSynchronize_v2(CUcontext context);
API CUresult cuStreamDestroy(CUstream stream);
API CUresult cuStreamDestroy_v2(CUstream stream);

API CUresult cuStreamBeginCapture(CUstream stream);
API CUresult cuStreamBeginCapture_ptsz(CUstream stream);
API CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
API CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode);
API CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const void *needs, const void *edges,
                                         size_t count, int mode);
API CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const void *needs, const void *edges,
                                              size_t count, int mode);
API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
API CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph);

CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuStreamIsCapturing(CUstream stream, int *status);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
CUresult cuThreadExchangeStreamCaptureMode(int *mode);
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags);
CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned int flags);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *memory, unsigned int flags);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuFuncGetName(const char **name, const void *function);
CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer);
CUresult cuKernelGetName(const char **name, const void *kernel);

#endif
