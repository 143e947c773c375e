/* Kernels and graphs: what takes the card's time, and asks for it. */
#define _GNU_SOURCE
#include "entry_bodies.h"
#include "memory.h"

static inline uint64_t volume(unsigned int x, unsigned int y, unsigned int z) {
    return (uint64_t)x * y * z;
}

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
        if (captures_open && stream_is_capturing(stream_of(stream)))                                                   \
            return CALL(name, graph, stream);                                                                          \
        CUresult refusal = begin_graph_launch(graph);                                                                  \
        if (refusal != CUDA_SUCCESS)                                                                                   \
            return refusal;                                                                                            \
        ASKING(NO_KERNEL, stream_of(stream), graph, 0, end_graph_launch(graph, CALL(name, graph, stream)));            \
    }

KERNEL(cuLaunchKernel, of_all)
KERNEL(cuLaunchKernel_ptsz, of_thread)
CONFIGURED_KERNEL(cuLaunchKernelEx, of_all)
CONFIGURED_KERNEL(cuLaunchKernelEx_ptsz, of_thread)
COOPERATIVE_KERNEL(cuLaunchCooperativeKernel, of_all)
COOPERATIVE_KERNEL(cuLaunchCooperativeKernel_ptsz, of_thread)
GRAPH(cuGraphLaunch, of_all)
GRAPH(cuGraphLaunch_ptsz, of_thread)

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
