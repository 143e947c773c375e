/* Which entries the library stands before to keep a container to its share of GPU time, and which it asks for that; as
   entries.h has them for memory. */

#ifndef TESSERA_LAUNCH_ENTRIES_H
#define TESSERA_LAUNCH_ENTRIES_H

#define LAUNCH_HOOKED(ENTRY)                                                                                           \
    ENTRY(cuLaunchKernel)                                                                                              \
    ENTRY(cuLaunchKernel_ptsz)                                                                                         \
    ENTRY(cuLaunchKernelEx)                                                                                            \
    ENTRY(cuLaunchKernelEx_ptsz)                                                                                       \
    ENTRY(cuLaunchCooperativeKernel)                                                                                   \
    ENTRY(cuLaunchCooperativeKernel_ptsz)                                                                              \
    ENTRY(cuLaunchCooperativeKernelMultiDevice)                                                                        \
    ENTRY(cuLaunch)                                                                                                    \
    ENTRY(cuLaunchGrid)                                                                                                \
    ENTRY(cuLaunchGridAsync)                                                                                           \
    ENTRY(cuGraphLaunch)                                                                                               \
    ENTRY(cuGraphLaunch_ptsz)                                                                                          \
    ENTRY(cuMemcpyDtoDAsync_v2)                                                                                        \
    ENTRY(cuMemcpyDtoDAsync_v2_ptsz)                                                                                   \
    ENTRY(cuMemcpyHtoDAsync_v2)                                                                                        \
    ENTRY(cuMemcpyHtoDAsync_v2_ptsz)                                                                                   \
    ENTRY(cuMemcpyDtoHAsync_v2)                                                                                        \
    ENTRY(cuMemcpyDtoHAsync_v2_ptsz)                                                                                   \
    ENTRY(cuMemcpyAsync)                                                                                               \
    ENTRY(cuMemcpyAsync_ptsz)                                                                                          \
    ENTRY(cuMemcpyBatchAsync)                                                                                          \
    ENTRY(cuMemcpyBatchAsync_ptsz)                                                                                     \
    ENTRY(cuMemcpyBatchAsync_v2)                                                                                       \
    ENTRY(cuMemcpyBatchAsync_v2_ptsz)                                                                                  \
    ENTRY(cuMemcpyPeerAsync)                                                                                           \
    ENTRY(cuMemcpyPeerAsync_ptsz)                                                                                      \
    ENTRY(cuMemcpy2DAsync_v2)                                                                                          \
    ENTRY(cuMemcpy2DAsync_v2_ptsz)                                                                                     \
    ENTRY(cuMemcpy3DAsync_v2)                                                                                          \
    ENTRY(cuMemcpy3DAsync_v2_ptsz)                                                                                     \
    ENTRY(cuMemsetD8Async)                                                                                             \
    ENTRY(cuMemsetD8Async_ptsz)                                                                                        \
    ENTRY(cuMemsetD2D8Async)                                                                                           \
    ENTRY(cuMemsetD2D8Async_ptsz)                                                                                      \
    ENTRY(cuMemsetD16Async)                                                                                            \
    ENTRY(cuMemsetD16Async_ptsz)                                                                                       \
    ENTRY(cuMemsetD2D16Async)                                                                                          \
    ENTRY(cuMemsetD2D16Async_ptsz)                                                                                     \
    ENTRY(cuMemsetD32Async)                                                                                            \
    ENTRY(cuMemsetD32Async_ptsz)                                                                                       \
    ENTRY(cuMemsetD2D32Async)                                                                                          \
    ENTRY(cuMemsetD2D32Async_ptsz)                                                                                     \
    ENTRY(cuMemcpyDtoD_v2)                                                                                             \
    ENTRY(cuMemcpyDtoD_v2_ptds)                                                                                        \
    ENTRY(cuMemcpyHtoD_v2)                                                                                             \
    ENTRY(cuMemcpyHtoD_v2_ptds)                                                                                        \
    ENTRY(cuMemcpyDtoH_v2)                                                                                             \
    ENTRY(cuMemcpyDtoH_v2_ptds)                                                                                        \
    ENTRY(cuMemcpy)                                                                                                    \
    ENTRY(cuMemcpy_ptds)                                                                                               \
    ENTRY(cuMemcpyPeer)                                                                                                \
    ENTRY(cuMemcpyPeer_ptds)                                                                                           \
    ENTRY(cuMemcpy2D_v2)                                                                                               \
    ENTRY(cuMemcpy2D_v2_ptds)                                                                                          \
    ENTRY(cuMemcpy2DUnaligned_v2)                                                                                      \
    ENTRY(cuMemcpy2DUnaligned_v2_ptds)                                                                                 \
    ENTRY(cuMemcpy3D_v2)                                                                                               \
    ENTRY(cuMemcpy3D_v2_ptds)                                                                                          \
    ENTRY(cuMemsetD8_v2)                                                                                               \
    ENTRY(cuMemsetD8_v2_ptds)                                                                                          \
    ENTRY(cuMemsetD2D8_v2)                                                                                             \
    ENTRY(cuMemsetD2D8_v2_ptds)                                                                                        \
    ENTRY(cuMemsetD16_v2)                                                                                              \
    ENTRY(cuMemsetD16_v2_ptds)                                                                                         \
    ENTRY(cuMemsetD2D16_v2)                                                                                            \
    ENTRY(cuMemsetD2D16_v2_ptds)                                                                                       \
    ENTRY(cuMemsetD32_v2)                                                                                              \
    ENTRY(cuMemsetD32_v2_ptds)                                                                                         \
    ENTRY(cuMemsetD2D32_v2)                                                                                            \
    ENTRY(cuMemsetD2D32_v2_ptds)                                                                                       \
    ENTRY(cuStreamSynchronize)                                                                                         \
    ENTRY(cuStreamSynchronize_ptsz)                                                                                    \
    ENTRY(cuEventSynchronize)                                                                                          \
    ENTRY(cuCtxSynchronize)                                                                                            \
    ENTRY(cuCtxSynchronize_v2)                                                                                         \
    ENTRY(cuStreamDestroy)                                                                                             \
    ENTRY(cuStreamDestroy_v2)                                                                                          \
    ENTRY(cuStreamBeginCapture)                                                                                        \
    ENTRY(cuStreamBeginCapture_ptsz)                                                                                   \
    ENTRY(cuStreamBeginCapture_v2)                                                                                     \
    ENTRY(cuStreamBeginCapture_v2_ptsz)                                                                                \
    ENTRY(cuStreamBeginCaptureToGraph)                                                                                 \
    ENTRY(cuStreamBeginCaptureToGraph_ptsz)                                                                            \
    ENTRY(cuStreamEndCapture)                                                                                          \
    ENTRY(cuStreamEndCapture_ptsz)

#define LAUNCH_ASKED(ENTRY)                                                                                            \
    ENTRY(cuEventCreate)                                                                                               \
    ENTRY(cuEventRecord)                                                                                               \
    ENTRY(cuEventQuery)                                                                                                \
    ENTRY(cuEventElapsedTime)                                                                                          \
    ENTRY(cuEventDestroy_v2)                                                                                           \
    ENTRY(cuStreamIsCapturing)                                                                                         \
    ENTRY(cuStreamQuery)                                                                                               \
    ENTRY(cuStreamGetCtx)                                                                                              \
    ENTRY(cuThreadExchangeStreamCaptureMode)                                                                           \
    ENTRY(cuStreamWaitValue32_v2)                                                                                      \
    ENTRY(cuMemHostAlloc)                                                                                              \
    ENTRY(cuMemHostGetDevicePointer_v2)                                                                                \
    ENTRY(cuCtxSetCurrent)                                                                                             \
    ENTRY(cuFuncGetName)                                                                                               \
    ENTRY(cuPointerGetAttribute)                                                                                       \
    ENTRY(cuKernelGetName)

#endif
