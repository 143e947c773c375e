/* Which entries cuGetProcAddress knows: the name without a version, the CUDA version that brought the entry, the entry,
   and the one for default streams of threads. The entry that is newest for a program is its entry. */

#ifndef TESSERA_SIM_CUDA_ENTRIES_H
#define TESSERA_SIM_CUDA_ENTRIES_H

/* One that has nothing to do with streams; one that takes a stream; one that uses the default stream. */
#define PLAIN(ROW, name, since, entry) ROW(#name, since, entry, entry)
#define STREAM(ROW, name, since, entry) ROW(#name, since, entry, entry##_ptsz)
#define DEFAULT(ROW, name, since, entry) ROW(#name, since, entry, entry##_ptds)

#define DRIVER_ROWS(ROW)                                                                                               \
    PLAIN(ROW, cuInit, 2000, cuInit)                                                                                   \
    PLAIN(ROW, cuDriverGetVersion, 2020, cuDriverGetVersion)                                                           \
    PLAIN(ROW, cuGetErrorName, 6000, cuGetErrorName)                                                                   \
    PLAIN(ROW, cuGetErrorString, 6000, cuGetErrorString)                                                               \
    PLAIN(ROW, cuDeviceGet, 2000, cuDeviceGet)                                                                         \
    PLAIN(ROW, cuDeviceGetCount, 2000, cuDeviceGetCount)                                                               \
    PLAIN(ROW, cuDeviceGetName, 2000, cuDeviceGetName)                                                                 \
    PLAIN(ROW, cuDeviceGetUuid, 9020, cuDeviceGetUuid)                                                                 \
    PLAIN(ROW, cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2)                                                             \
    PLAIN(ROW, cuDeviceGetAttribute, 2000, cuDeviceGetAttribute)                                                       \
    PLAIN(ROW, cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2)                                                            \
    PLAIN(ROW, cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain)                                               \
    PLAIN(ROW, cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease)                                             \
    PLAIN(ROW, cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2)                                         \
    PLAIN(ROW, cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset)                                                 \
    PLAIN(ROW, cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2)                                             \
    PLAIN(ROW, cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState)                                           \
    PLAIN(ROW, cuCtxCreate, 3020, cuCtxCreate_v2)                                                                      \
    PLAIN(ROW, cuCtxCreate, 11040, cuCtxCreate_v3)                                                                     \
    PLAIN(ROW, cuCtxCreate, 12050, cuCtxCreate_v4)                                                                     \
    PLAIN(ROW, cuCtxDestroy, 4000, cuCtxDestroy_v2)                                                                    \
    PLAIN(ROW, cuCtxSetCurrent, 4000, cuCtxSetCurrent)                                                                 \
    PLAIN(ROW, cuCtxGetCurrent, 4000, cuCtxGetCurrent)                                                                 \
    PLAIN(ROW, cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2)                                                            \
    PLAIN(ROW, cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2)                                                              \
    PLAIN(ROW, cuCtxGetDevice, 2000, cuCtxGetDevice)                                                                   \
    PLAIN(ROW, cuCtxGetId, 12000, cuCtxGetId)                                                                          \
    PLAIN(ROW, cuCtxSynchronize, 2000, cuCtxSynchronize)                                                               \
    PLAIN(ROW, cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange)                                         \
    PLAIN(ROW, cuGetProcAddress, 11030, cuGetProcAddress)                                                              \
    PLAIN(ROW, cuGetProcAddress, 12000, cuGetProcAddress_v2)

#define MEMORY_ROWS(ROW)                                                                                               \
    PLAIN(ROW, cuMemGetInfo, 3020, cuMemGetInfo_v2)                                                                    \
    PLAIN(ROW, cuMemAlloc, 3020, cuMemAlloc_v2)                                                                        \
    PLAIN(ROW, cuMemAllocPitch, 3020, cuMemAllocPitch_v2)                                                              \
    PLAIN(ROW, cuMemAllocManaged, 6000, cuMemAllocManaged)                                                             \
    PLAIN(ROW, cuMemFree, 3020, cuMemFree_v2)                                                                          \
    PLAIN(ROW, cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2)                                                    \
    PLAIN(ROW, cuPointerGetAttribute, 4000, cuPointerGetAttribute)                                                     \
    STREAM(ROW, cuMemAllocAsync, 11020, cuMemAllocAsync)                                                               \
    STREAM(ROW, cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync)                                               \
    STREAM(ROW, cuMemFreeAsync, 11020, cuMemFreeAsync)                                                                 \
    PLAIN(ROW, cuMemPoolCreate, 11020, cuMemPoolCreate)                                                                \
    PLAIN(ROW, cuMemPoolDestroy, 11020, cuMemPoolDestroy)                                                              \
    PLAIN(ROW, cuMemPoolTrimTo, 11020, cuMemPoolTrimTo)                                                                \
    PLAIN(ROW, cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute)                                                    \
    PLAIN(ROW, cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute)                                                    \
    PLAIN(ROW, cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool)                                            \
    PLAIN(ROW, cuDeviceGetMemPool, 11020, cuDeviceGetMemPool)                                                          \
    PLAIN(ROW, cuDeviceSetMemPool, 11020, cuDeviceSetMemPool)                                                          \
    PLAIN(ROW, cuArrayCreate, 3020, cuArrayCreate_v2)                                                                  \
    PLAIN(ROW, cuArray3DCreate, 3020, cuArray3DCreate_v2)                                                              \
    PLAIN(ROW, cuArrayDestroy, 2000, cuArrayDestroy)                                                                   \
    PLAIN(ROW, cuMipmappedArrayCreate, 5000, cuMipmappedArrayCreate)                                                   \
    PLAIN(ROW, cuMipmappedArrayDestroy, 5000, cuMipmappedArrayDestroy)                                                 \
    PLAIN(ROW, cuMemCreate, 10020, cuMemCreate)                                                                        \
    PLAIN(ROW, cuMemRelease, 10020, cuMemRelease)                                                                      \
    PLAIN(ROW, cuMemRetainAllocationHandle, 11000, cuMemRetainAllocationHandle)                                        \
    PLAIN(ROW, cuMemAddressReserve, 10020, cuMemAddressReserve)                                                        \
    PLAIN(ROW, cuMemAddressFree, 10020, cuMemAddressFree)                                                              \
    PLAIN(ROW, cuMemMap, 10020, cuMemMap)                                                                              \
    PLAIN(ROW, cuMemSetAccess, 10020, cuMemSetAccess)                                                                  \
    PLAIN(ROW, cuMemUnmap, 10020, cuMemUnmap)                                                                          \
    PLAIN(ROW, cuMemGetAllocationPropertiesFromHandle, 10020, cuMemGetAllocationPropertiesFromHandle)                  \
    PLAIN(ROW, cuMemExportToShareableHandle, 10020, cuMemExportToShareableHandle)                                      \
    PLAIN(ROW, cuMemImportFromShareableHandle, 10020, cuMemImportFromShareableHandle)                                  \
    PLAIN(ROW, cuIpcGetMemHandle, 4010, cuIpcGetMemHandle)                                                             \
    PLAIN(ROW, cuIpcOpenMemHandle, 11000, cuIpcOpenMemHandle_v2)                                                       \
    PLAIN(ROW, cuIpcCloseMemHandle, 4010, cuIpcCloseMemHandle)                                                         \
    PLAIN(ROW, cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity)

#define STREAM_ROWS(ROW)                                                                                               \
    PLAIN(ROW, cuStreamCreate, 2000, cuStreamCreate)                                                                   \
    PLAIN(ROW, cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority)                                           \
    PLAIN(ROW, cuStreamDestroy, 2000, cuStreamDestroy)                                                                 \
    PLAIN(ROW, cuStreamDestroy, 4000, cuStreamDestroy_v2)                                                              \
    STREAM(ROW, cuStreamSynchronize, 2000, cuStreamSynchronize)                                                        \
    STREAM(ROW, cuStreamQuery, 2000, cuStreamQuery)                                                                    \
    STREAM(ROW, cuStreamGetFlags, 5050, cuStreamGetFlags)                                                              \
    STREAM(ROW, cuStreamGetPriority, 5050, cuStreamGetPriority)                                                        \
    STREAM(ROW, cuStreamGetId, 12000, cuStreamGetId)                                                                   \
    STREAM(ROW, cuStreamGetCtx, 9020, cuStreamGetCtx)                                                                  \
    STREAM(ROW, cuStreamGetDevice, 12080, cuStreamGetDevice)                                                           \
    STREAM(ROW, cuStreamWaitEvent, 3020, cuStreamWaitEvent)                                                            \
    STREAM(ROW, cuStreamWaitValue32, 8000, cuStreamWaitValue32)                                                        \
    STREAM(ROW, cuStreamWaitValue32, 11070, cuStreamWaitValue32_v2)                                                    \
    STREAM(ROW, cuStreamWaitValue64, 9000, cuStreamWaitValue64)                                                        \
    STREAM(ROW, cuStreamWaitValue64, 11070, cuStreamWaitValue64_v2)                                                    \
    STREAM(ROW, cuStreamWriteValue32, 8000, cuStreamWriteValue32)                                                      \
    STREAM(ROW, cuStreamWriteValue32, 11070, cuStreamWriteValue32_v2)                                                  \
    STREAM(ROW, cuStreamWriteValue64, 9000, cuStreamWriteValue64)                                                      \
    STREAM(ROW, cuStreamWriteValue64, 11070, cuStreamWriteValue64_v2)                                                  \
    STREAM(ROW, cuLaunchHostFunc, 10000, cuLaunchHostFunc)                                                             \
    PLAIN(ROW, cuEventCreate, 2000, cuEventCreate)                                                                     \
    PLAIN(ROW, cuEventDestroy, 2000, cuEventDestroy)                                                                   \
    PLAIN(ROW, cuEventDestroy, 4000, cuEventDestroy_v2)                                                                \
    STREAM(ROW, cuEventRecord, 2000, cuEventRecord)                                                                    \
    STREAM(ROW, cuEventRecordWithFlags, 11010, cuEventRecordWithFlags)                                                 \
    PLAIN(ROW, cuEventQuery, 2000, cuEventQuery)                                                                       \
    PLAIN(ROW, cuEventSynchronize, 2000, cuEventSynchronize)                                                           \
    PLAIN(ROW, cuEventElapsedTime, 2000, cuEventElapsedTime)                                                           \
    PLAIN(ROW, cuEventElapsedTime, 12080, cuEventElapsedTime_v2)

#define CAPTURE_ROWS(ROW)                                                                                              \
    STREAM(ROW, cuStreamBeginCapture, 10000, cuStreamBeginCapture)                                                     \
    STREAM(ROW, cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2)                                                  \
    STREAM(ROW, cuStreamEndCapture, 10000, cuStreamEndCapture)                                                         \
    STREAM(ROW, cuStreamIsCapturing, 10000, cuStreamIsCapturing)                                                       \
    STREAM(ROW, cuStreamGetCaptureInfo, 10010, cuStreamGetCaptureInfo)                                                 \
    STREAM(ROW, cuStreamGetCaptureInfo, 11030, cuStreamGetCaptureInfo_v2)                                              \
    STREAM(ROW, cuStreamGetCaptureInfo, 12030, cuStreamGetCaptureInfo_v3)                                              \
    PLAIN(ROW, cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode)                            \
    PLAIN(ROW, cuGraphCreate, 10000, cuGraphCreate)                                                                    \
    PLAIN(ROW, cuGraphDestroy, 10000, cuGraphDestroy)                                                                  \
    PLAIN(ROW, cuGraphGetNodes, 10000, cuGraphGetNodes)                                                                \
    PLAIN(ROW, cuGraphNodeGetType, 10000, cuGraphNodeGetType)                                                          \
    PLAIN(ROW, cuGraphAddEmptyNode, 10000, cuGraphAddEmptyNode)                                                        \
    PLAIN(ROW, cuGraphAddKernelNode, 10000, cuGraphAddKernelNode)                                                      \
    PLAIN(ROW, cuGraphAddKernelNode, 12000, cuGraphAddKernelNode_v2)                                                   \
    PLAIN(ROW, cuGraphAddMemAllocNode, 11040, cuGraphAddMemAllocNode)                                                  \
    PLAIN(ROW, cuGraphAddMemFreeNode, 11040, cuGraphAddMemFreeNode)                                                    \
    PLAIN(ROW, cuGraphMemAllocNodeGetParams, 11040, cuGraphMemAllocNodeGetParams)                                      \
    PLAIN(ROW, cuGraphMemFreeNodeGetParams, 11040, cuGraphMemFreeNodeGetParams)                                        \
    PLAIN(ROW, cuDeviceGetGraphMemAttribute, 11040, cuDeviceGetGraphMemAttribute)                                      \
    PLAIN(ROW, cuDeviceSetGraphMemAttribute, 11040, cuDeviceSetGraphMemAttribute)                                      \
    PLAIN(ROW, cuDeviceGraphMemTrim, 11040, cuDeviceGraphMemTrim)                                                      \
    PLAIN(ROW, cuGraphInstantiate, 10000, cuGraphInstantiate)                                                          \
    PLAIN(ROW, cuGraphInstantiate, 11000, cuGraphInstantiate_v2)                                                       \
    PLAIN(ROW, cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags)                                        \
    STREAM(ROW, cuGraphInstantiateWithParams, 12000, cuGraphInstantiateWithParams)                                     \
    PLAIN(ROW, cuGraphAddChildGraphNode, 10000, cuGraphAddChildGraphNode)                                              \
    PLAIN(ROW, cuGraphChildGraphNodeGetGraph, 10000, cuGraphChildGraphNodeGetGraph)                                    \
    PLAIN(ROW, cuGraphExecDestroy, 10000, cuGraphExecDestroy)                                                          \
    STREAM(ROW, cuGraphLaunch, 10000, cuGraphLaunch)                                                                   \
    STREAM(ROW, cuGraphUpload, 11010, cuGraphUpload)

#define COPY_ROWS(ROW)                                                                                                 \
    DEFAULT(ROW, cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2)                                                                  \
    DEFAULT(ROW, cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2)                                                                  \
    DEFAULT(ROW, cuMemcpyDtoD, 3020, cuMemcpyDtoD_v2)                                                                  \
    DEFAULT(ROW, cuMemcpy, 4000, cuMemcpy)                                                                             \
    STREAM(ROW, cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2)                                                         \
    STREAM(ROW, cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2)                                                         \
    STREAM(ROW, cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2)                                                         \
    STREAM(ROW, cuMemcpyAsync, 4000, cuMemcpyAsync)                                                                    \
    DEFAULT(ROW, cuMemcpy2D, 3020, cuMemcpy2D_v2)                                                                      \
    DEFAULT(ROW, cuMemcpy2DUnaligned, 3020, cuMemcpy2DUnaligned_v2)                                                    \
    DEFAULT(ROW, cuMemcpy3D, 3020, cuMemcpy3D_v2)                                                                      \
    STREAM(ROW, cuMemcpy2DAsync, 3020, cuMemcpy2DAsync_v2)                                                             \
    STREAM(ROW, cuMemcpy3DAsync, 3020, cuMemcpy3DAsync_v2)                                                             \
    DEFAULT(ROW, cuMemsetD8, 3020, cuMemsetD8_v2)                                                                      \
    DEFAULT(ROW, cuMemsetD16, 3020, cuMemsetD16_v2)                                                                    \
    DEFAULT(ROW, cuMemsetD32, 3020, cuMemsetD32_v2)                                                                    \
    STREAM(ROW, cuMemsetD8Async, 3020, cuMemsetD8Async)                                                                \
    STREAM(ROW, cuMemsetD16Async, 3020, cuMemsetD16Async)                                                              \
    STREAM(ROW, cuMemsetD32Async, 3020, cuMemsetD32Async)                                                              \
    PLAIN(ROW, cuMemHostAlloc, 2020, cuMemHostAlloc)                                                                   \
    PLAIN(ROW, cuMemAllocHost, 3020, cuMemAllocHost_v2)                                                                \
    PLAIN(ROW, cuMemFreeHost, 2000, cuMemFreeHost)                                                                     \
    PLAIN(ROW, cuMemHostRegister, 6050, cuMemHostRegister_v2)                                                          \
    PLAIN(ROW, cuMemHostUnregister, 4000, cuMemHostUnregister)                                                         \
    PLAIN(ROW, cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2)                                          \
    PLAIN(ROW, cuMemHostGetFlags, 2030, cuMemHostGetFlags)

#define KERNEL_ROWS(ROW)                                                                                               \
    PLAIN(ROW, cuModuleLoad, 2000, cuModuleLoad)                                                                       \
    PLAIN(ROW, cuModuleLoadData, 2000, cuModuleLoadData)                                                               \
    PLAIN(ROW, cuModuleLoadDataEx, 2010, cuModuleLoadDataEx)                                                           \
    PLAIN(ROW, cuModuleLoadFatBinary, 2000, cuModuleLoadFatBinary)                                                     \
    PLAIN(ROW, cuModuleGetFunction, 2000, cuModuleGetFunction)                                                         \
    PLAIN(ROW, cuModuleUnload, 2000, cuModuleUnload)                                                                   \
    PLAIN(ROW, cuLibraryLoadData, 12000, cuLibraryLoadData)                                                            \
    PLAIN(ROW, cuLibraryLoadFromFile, 12000, cuLibraryLoadFromFile)                                                    \
    PLAIN(ROW, cuLibraryUnload, 12000, cuLibraryUnload)                                                                \
    PLAIN(ROW, cuLibraryGetKernel, 12000, cuLibraryGetKernel)                                                          \
    PLAIN(ROW, cuLibraryGetModule, 12000, cuLibraryGetModule)                                                          \
    PLAIN(ROW, cuKernelGetFunction, 12000, cuKernelGetFunction)                                                        \
    PLAIN(ROW, cuKernelGetName, 12030, cuKernelGetName)                                                                \
    PLAIN(ROW, cuFuncGetName, 12030, cuFuncGetName)                                                                    \
    PLAIN(ROW, cuFuncGetModule, 11000, cuFuncGetModule)                                                                \
    PLAIN(ROW, cuFuncGetAttribute, 2020, cuFuncGetAttribute)                                                           \
    PLAIN(ROW, cuFuncSetAttribute, 9000, cuFuncSetAttribute)                                                           \
    PLAIN(ROW, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor)         \
    STREAM(ROW, cuLaunchKernel, 4000, cuLaunchKernel)                                                                  \
    STREAM(ROW, cuLaunchKernelEx, 11060, cuLaunchKernelEx)                                                             \
    STREAM(ROW, cuLaunchCooperativeKernel, 9000, cuLaunchCooperativeKernel)

#define ROWS(ROW)                                                                                                      \
    DRIVER_ROWS(ROW)                                                                                                   \
    MEMORY_ROWS(ROW)                                                                                                   \
    STREAM_ROWS(ROW)                                                                                                   \
    CAPTURE_ROWS(ROW)                                                                                                  \
    COPY_ROWS(ROW)                                                                                                     \
    KERNEL_ROWS(ROW)

#endif
