/* Which entries of the driver the library stands before, and which it asks itself. One list, from which the table of
   real entries, the lookup and the swap are made. An entry that a driver lacks stays NULL and is never handed out. */

#ifndef TESSERA_ENTRIES_H
#define TESSERA_ENTRIES_H

#define CUDA_HOOKED(ENTRY)                                                                                             \
    ENTRY(cuInit)                                                                                                      \
    ENTRY(cuGetProcAddress)                                                                                            \
    ENTRY(cuGetProcAddress_v2)                                                                                         \
    ENTRY(cuDeviceTotalMem)                                                                                            \
    ENTRY(cuDeviceTotalMem_v2)                                                                                         \
    ENTRY(cuMemGetInfo)                                                                                                \
    ENTRY(cuMemGetInfo_v2)                                                                                             \
    ENTRY(cuDevicePrimaryCtxRetain)                                                                                    \
    ENTRY(cuDevicePrimaryCtxRelease)                                                                                   \
    ENTRY(cuDevicePrimaryCtxRelease_v2)                                                                                \
    ENTRY(cuDevicePrimaryCtxReset)                                                                                     \
    ENTRY(cuDevicePrimaryCtxReset_v2)                                                                                  \
    ENTRY(cuCtxCreate_v2)                                                                                              \
    ENTRY(cuCtxCreate)                                                                                                 \
    ENTRY(cuCtxCreate_v3)                                                                                              \
    ENTRY(cuCtxCreate_v4)                                                                                              \
    ENTRY(cuCtxDestroy_v2)                                                                                             \
    ENTRY(cuCtxDestroy)                                                                                                \
    ENTRY(cuGreenCtxDestroy)                                                                                           \
    ENTRY(cuCtxSetLimit)                                                                                               \
    ENTRY(cuMemAlloc)                                                                                                  \
    ENTRY(cuMemAlloc_v2)                                                                                               \
    ENTRY(cuMemAllocPitch)                                                                                             \
    ENTRY(cuMemAllocPitch_v2)                                                                                          \
    ENTRY(cuMemAllocManaged)                                                                                           \
    ENTRY(cuMemFree)                                                                                                   \
    ENTRY(cuMemFree_v2)                                                                                                \
    ENTRY(cuMemAllocAsync)                                                                                             \
    ENTRY(cuMemAllocAsync_ptsz)                                                                                        \
    ENTRY(cuMemAllocFromPoolAsync)                                                                                     \
    ENTRY(cuMemAllocFromPoolAsync_ptsz)                                                                                \
    ENTRY(cuMemFreeAsync)                                                                                              \
    ENTRY(cuMemFreeAsync_ptsz)                                                                                         \
    ENTRY(cuMemPoolCreate)                                                                                             \
    ENTRY(cuMemPoolDestroy)                                                                                            \
    ENTRY(cuMemPoolTrimTo)                                                                                             \
    ENTRY(cuDeviceGetMemPool)                                                                                          \
    ENTRY(cuDeviceGetDefaultMemPool)                                                                                   \
    ENTRY(cuMemGetMemPool)                                                                                             \
    ENTRY(cuMemGetDefaultMemPool)                                                                                      \
    ENTRY(cuArrayCreate_v2)                                                                                            \
    ENTRY(cuArrayCreate)                                                                                               \
    ENTRY(cuArray3DCreate_v2)                                                                                          \
    ENTRY(cuArray3DCreate)                                                                                             \
    ENTRY(cuArrayDestroy)                                                                                              \
    ENTRY(cuMipmappedArrayCreate)                                                                                      \
    ENTRY(cuMipmappedArrayDestroy)                                                                                     \
    ENTRY(cuMemCreate)                                                                                                 \
    ENTRY(cuMemRelease)                                                                                                \
    ENTRY(cuMemRetainAllocationHandle)                                                                                 \
    ENTRY(cuMemMap)                                                                                                    \
    ENTRY(cuMemUnmap)                                                                                                  \
    ENTRY(cuMemExportToShareableHandle)                                                                                \
    ENTRY(cuMemImportFromShareableHandle)                                                                              \
    ENTRY(cuIpcGetMemHandle)                                                                                           \
    ENTRY(cuIpcCloseMemHandle)                                                                                         \
    ENTRY(cuModuleLoad)                                                                                                \
    ENTRY(cuModuleLoadData)                                                                                            \
    ENTRY(cuModuleLoadDataEx)                                                                                          \
    ENTRY(cuModuleLoadFatBinary)                                                                                       \
    ENTRY(cuLibraryLoadData)                                                                                           \
    ENTRY(cuLibraryLoadFromFile)                                                                                       \
    ENTRY(cuGraphInstantiate)                                                                                          \
    ENTRY(cuGraphInstantiate_v2)                                                                                       \
    ENTRY(cuGraphInstantiateWithFlags)                                                                                 \
    ENTRY(cuGraphInstantiateWithParams)                                                                                \
    ENTRY(cuGraphInstantiateWithParams_ptsz)                                                                           \
    ENTRY(cuGraphExecDestroy)                                                                                          \
    ENTRY(cuGraphUpload)                                                                                               \
    ENTRY(cuGraphUpload_ptsz)                                                                                          \
    ENTRY(cuDeviceGraphMemTrim)

#define CUDA_ASKED(ENTRY)                                                                                              \
    ENTRY(cuDeviceGetUuid)                                                                                             \
    ENTRY(cuDeviceGetUuid_v2)                                                                                          \
    ENTRY(cuDevicePrimaryCtxGetState)                                                                                  \
    ENTRY(cuCtxFromGreenCtx)                                                                                           \
    ENTRY(cuCtxGetCurrent)                                                                                             \
    ENTRY(cuCtxGetDevice)                                                                                              \
    ENTRY(cuMemPoolGetAttribute)                                                                                       \
    ENTRY(cuMemFreeHost)                                                                                               \
    ENTRY(cuMemGetAddressRange_v2)                                                                                     \
    ENTRY(cuGraphGetNodes)                                                                                             \
    ENTRY(cuGraphNodeGetType)                                                                                          \
    ENTRY(cuGraphMemAllocNodeGetParams)                                                                                \
    ENTRY(cuGraphMemFreeNodeGetParams)                                                                                 \
    ENTRY(cuGraphChildGraphNodeGetGraph)                                                                               \
    ENTRY(cuDeviceGetGraphMemAttribute)

#define NVML_HOOKED(ENTRY)                                                                                             \
    ENTRY(nvmlDeviceGetMemoryInfo)                                                                                     \
    ENTRY(nvmlDeviceGetMemoryInfo_v2)                                                                                  \
    ENTRY(nvmlDeviceGetComputeRunningProcesses)                                                                        \
    ENTRY(nvmlDeviceGetComputeRunningProcesses_v2)                                                                     \
    ENTRY(nvmlDeviceGetComputeRunningProcesses_v3)                                                                     \
    ENTRY(nvmlDeviceGetGraphicsRunningProcesses)                                                                       \
    ENTRY(nvmlDeviceGetGraphicsRunningProcesses_v2)                                                                    \
    ENTRY(nvmlDeviceGetGraphicsRunningProcesses_v3)                                                                    \
    ENTRY(nvmlDeviceGetMPSComputeRunningProcesses)                                                                     \
    ENTRY(nvmlDeviceGetMPSComputeRunningProcesses_v2)                                                                  \
    ENTRY(nvmlDeviceGetMPSComputeRunningProcesses_v3)                                                                  \
    ENTRY(nvmlDeviceGetRunningProcessDetailList)                                                                       \
    ENTRY(nvmlDeviceGetUtilizationRates)                                                                               \
    ENTRY(nvmlDeviceGetProcessUtilization)                                                                             \
    ENTRY(nvmlDeviceGetProcessesUtilizationInfo)

#define NVML_ASKED(ENTRY)                                                                                              \
    ENTRY(nvmlInit_v2)                                                                                                 \
    ENTRY(nvmlDeviceGetCount_v2)                                                                                       \
    ENTRY(nvmlDeviceGetHandleByIndex_v2)                                                                               \
    ENTRY(nvmlDeviceGetHandleByUUID)                                                                                   \
    ENTRY(nvmlDeviceGetUUID)                                                                                           \
    ENTRY(nvmlDeviceGetIndex)                                                                                          \
    ENTRY(nvmlDeviceGetMinorNumber)

#endif
