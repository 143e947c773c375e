/* What takes the card's time, and must ask the gate: kernels, graphs, and what moves or fills memory of the card. */
#define _GNU_SOURCE
#include "compute.h"

static inline uint64_t volume(unsigned int x, unsigned int y, unsigned int z) {
    return (uint64_t)x * y * z;
}

#define ASKING(kind, stream, what, size, call)                                                                         \
    lane_t *lane = gate_is_open() ? NULL : gate_enter(stream, kind, what, size);                                       \
    CUresult result = call;                                                                                            \
    if (__builtin_expect(lane != NULL, 0))                                                                             \
        gate_leave(lane);                                                                                              \
    return result

#define PASSED function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters
#define GRID volume(grid_x, grid_y, grid_z) ^ volume(block_x, block_y, block_z) << 44

#define KERNEL(name, stream_of)                                                                                        \
    CUresult name(LAUNCH_PARAMETERS, void **extra) {                                                                   \
        ASKING(A_KERNEL, stream_of(stream), function, GRID, CALL(name, PASSED, extra));                                \
    }

#define COOPERATIVE_KERNEL(name, stream_of)                                                                            \
    CUresult name(LAUNCH_PARAMETERS) {                                                                                 \
        ASKING(A_KERNEL, stream_of(stream), function, GRID, CALL(name, PASSED));                                       \
    }

#define CONFIGURED_KERNEL(name, stream_of)                                                                             \
    CUresult name(const CUlaunchConfig *wish, CUfunction function, void **parameters, void **extra) {                  \
        if (wish == NULL)                                                                                              \
            return CALL(name, wish, function, parameters, extra);                                                      \
        uint64_t size = volume(wish->grid[0], wish->grid[1], wish->grid[2]) ^                                          \
                        volume(wish->block[0], wish->block[1], wish->block[2]) << 44;                                  \
        ASKING(A_KERNEL, stream_of(wish->stream), function, size, CALL(name, wish, function, parameters, extra));      \
    }

#define GRAPH(name, stream_of)                                                                                         \
    CUresult name(CUgraphExec graph, CUstream stream) {                                                                \
        CUresult refusal = begin_graph_launch(graph);                                                                  \
        if (refusal != CUDA_SUCCESS)                                                                                   \
            return refusal;                                                                                            \
        ASKING(NO_KERNEL, stream_of(stream), graph, 0, end_graph_launch(graph, CALL(name, graph, stream)));            \
    }

#define COPY(name, stream_of)                                                                                          \
    CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {                                   \
        ASKING(NO_KERNEL, stream_of(stream), (void *)(uintptr_t)&name, bytes, CALL(name, to, from, bytes, stream));    \
    }

#define FILL(name, type, stream_of)                                                                                    \
    CUresult name(CUdeviceptr to, type value, size_t count, CUstream stream) {                                         \
        ASKING(NO_KERNEL, stream_of(stream), (void *)(uintptr_t)&name, count, CALL(name, to, value, count, stream));   \
    }

#define COPY_NOW(name, stream)                                                                                         \
    CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes) {                                                    \
        ASKING(NO_KERNEL, stream, (void *)(uintptr_t)&name, bytes, CALL(name, to, from, bytes));                       \
    }

#define FILL_NOW(name, type, stream)                                                                                   \
    CUresult name(CUdeviceptr to, type value, size_t count) {                                                          \
        ASKING(NO_KERNEL, stream, (void *)(uintptr_t)&name, count, CALL(name, to, value, count));                      \
    }

/* A copy that does not say from where to where. */
#define ANY_COPY(name, stream_of)                                                                                      \
    CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {                                   \
        if (!gate_is_open() && !is_within_card(to, from)) {                                                            \
            gate_set_apart(stream_of(stream));                                                                         \
            return CALL(name, to, from, bytes, stream);                                                                \
        }                                                                                                              \
        ASKING(NO_KERNEL, stream_of(stream), (void *)(uintptr_t)&name, bytes, CALL(name, to, from, bytes, stream));    \
    }

static int is_of_card(CUdeviceptr pointer) {
    unsigned int type = 0;
    return real.cuPointerGetAttribute &&
           real.cuPointerGetAttribute(&type, POINTER_MEMORY_TYPE, pointer) == CUDA_SUCCESS && type == MEMORY_OF_CARD;
}

static int is_within_card(CUdeviceptr to, CUdeviceptr from) {
    return is_of_card(to) && is_of_card(from);
}

KERNEL(cuLaunchKernel, of_all)
KERNEL(cuLaunchKernel_ptsz, of_thread)
CONFIGURED_KERNEL(cuLaunchKernelEx, of_all)
CONFIGURED_KERNEL(cuLaunchKernelEx_ptsz, of_thread)
COOPERATIVE_KERNEL(cuLaunchCooperativeKernel, of_all)
COOPERATIVE_KERNEL(cuLaunchCooperativeKernel_ptsz, of_thread)
GRAPH(cuGraphLaunch, of_all)
GRAPH(cuGraphLaunch_ptsz, of_thread)
COPY(cuMemcpyDtoDAsync_v2, of_all)
COPY(cuMemcpyDtoDAsync_v2_ptsz, of_thread)
FILL(cuMemsetD8Async, unsigned char, of_all)
FILL(cuMemsetD8Async_ptsz, unsigned char, of_thread)
FILL(cuMemsetD16Async, unsigned short, of_all)
FILL(cuMemsetD16Async_ptsz, unsigned short, of_thread)
FILL(cuMemsetD32Async, unsigned int, of_all)
FILL(cuMemsetD32Async_ptsz, unsigned int, of_thread)

ANY_COPY(cuMemcpyAsync, of_all)
ANY_COPY(cuMemcpyAsync_ptsz, of_thread)
COPY_NOW(cuMemcpyDtoD_v2, NULL)
COPY_NOW(cuMemcpyDtoD_v2_ptds, PER_THREAD_STREAM)
FILL_NOW(cuMemsetD8_v2, unsigned char, NULL)
FILL_NOW(cuMemsetD8_v2_ptds, unsigned char, PER_THREAD_STREAM)
FILL_NOW(cuMemsetD16_v2, unsigned short, NULL)
FILL_NOW(cuMemsetD16_v2_ptds, unsigned short, PER_THREAD_STREAM)
FILL_NOW(cuMemsetD32_v2, unsigned int, NULL)
FILL_NOW(cuMemsetD32_v2_ptds, unsigned int, PER_THREAD_STREAM)

CUresult cuLaunch(CUfunction function) {
    ASKING(A_KERNEL, NULL, function, 1, CALL(cuLaunch, function));
}

CUresult cuLaunchGrid(CUfunction function, int width, int height) {
    ASKING(A_KERNEL, NULL, function, (uint64_t)width * (uint64_t)height, CALL(cuLaunchGrid, function, width, height));
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
    ASKING(A_KERNEL, stream, function, (uint64_t)width * (uint64_t)height,
           CALL(cuLaunchGridAsync, function, width, height, stream));
}

/* One launch on several cards, which wait for each other: it asks for the first, and the others pay with its next. */
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *wishes, unsigned int count, unsigned int flags) {
    if (wishes == NULL || count == 0)
        return CALL(cuLaunchCooperativeKernelMultiDevice, wishes, count, flags);
    ASKING(A_KERNEL, wishes->stream, wishes->function, volume(wishes->grid[0], wishes->grid[1], wishes->grid[2]),
           CALL(cuLaunchCooperativeKernelMultiDevice, wishes, count, flags));
}
