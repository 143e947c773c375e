/* Launches: kernels into streams and into graphs. What a kernel computes is not simulated, only the time it takes. */
#define _GNU_SOURCE
#include "cuda_graphs.h"
#include "cuda_modules.h"
#include "cuda_queue.h"

#include <string.h>

#define PARAMETERS_END ((void *)0)
#define PARAMETERS_POINTER ((void *)1)
#define MOST_THREADS 1024
#define MOST_GRID_X 0x7fffffffu
#define MOST_GRID_YZ 65535u
#define BLOCKS_PER_MULTIPROCESSOR 2
#define COOPERATIVE_ATTRIBUTE 2

typedef struct {
    unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z;
} shape_t;

typedef struct {
    int id;
    char padding[4];
    union {
        char bytes[64];
        int is_cooperative;
    } value;
} CUlaunchAttribute;

typedef struct {
    shape_t shape;
    unsigned int shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned int attribute_count;
} CUlaunchConfig;

/* Of CUDA 11; newer ones have two fields more. */
typedef struct {
    CUfunction function;
    shape_t shape;
    unsigned int shared_bytes;
    void **parameters, **extra;
} CUDA_KERNEL_NODE_PARAMS;

static CUresult check_launch(CUfunction function, const shape_t *shape) {
    uint64_t threads = (uint64_t)shape->block_x * shape->block_y * shape->block_z;
    uint64_t blocks = (uint64_t)shape->grid_x * shape->grid_y * shape->grid_z;
    if (function == NULL || function->magic != FUNCTION_MAGIC)
        return INVALID_HANDLE;
    if (threads == 0 || threads > MOST_THREADS || blocks == 0)
        return INVALID_VALUE;
    if (shape->grid_x > MOST_GRID_X || shape->grid_y > MOST_GRID_YZ || shape->grid_z > MOST_GRID_YZ)
        return INVALID_VALUE;
    return SUCCESS;
}

/* Where parameters come in one piece, the list has a pointer to it. */
static const void *first_parameter(void **parameters, void **extra) {
    if (parameters)
        return parameters[0];
    for (; extra && extra[0] != PARAMETERS_END; extra += 2)
        if (extra[0] == PARAMETERS_POINTER)
            return extra[1];
    return NULL;
}

static CUresult make_op(op_t *op, CUfunction function, const shape_t *shape, void **parameters, void **extra) {
    CUresult result = check_launch(function, shape);
    if (result != SUCCESS)
        return result;
    *op = (op_t){.kind = KERNEL, .kernel = {ORDINARY_NS, function->nature == TRAP}};
    if (function->nature != SPIN)
        return SUCCESS;
    const void *first = first_parameter(parameters, extra);
    if (first == NULL)
        return INVALID_VALUE;
    memcpy(&op->kernel.ns, first, sizeof op->kernel.ns);
    if (op->kernel.ns < ORDINARY_NS)
        op->kernel.ns = ORDINARY_NS;
    return SUCCESS;
}

/* ---- into streams --------------------------------------------------------------------------------------------- */

static CUresult launch(stream_t *stream, CUfunction function, shape_t shape, void **parameters, void **extra) {
    op_t op;
    CUresult result = make_op(&op, function, &shape, parameters, extra);
    if (result == SUCCESS)
        result = take_heap(stream->context);
    return result == SUCCESS ? queue_push(stream, op) : result;
}

/* All blocks of a cooperative kernel must be on the card at once. */
static CUresult launch_together(stream_t *stream, CUfunction function, shape_t shape, void **parameters) {
    uint64_t most = (uint64_t)stream->context->card->multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    uint64_t threads = (uint64_t)shape.block_x * shape.block_y * shape.block_z;
    if (threads && threads <= MOST_THREADS / 2)
        most = most * (MOST_THREADS / threads);
    if ((uint64_t)shape.grid_x * shape.grid_y * shape.grid_z > most)
        return COOPERATIVE_LAUNCH_TOO_LARGE;
    return launch(stream, function, shape, parameters, NULL);
}

static CUresult launch_as_configured(stream_t *stream, const CUlaunchConfig *wish, CUfunction function,
                                     void **parameters, void **extra) {
    for (unsigned int place = 0; place < wish->attribute_count; place++)
        if (wish->attributes[place].id == COOPERATIVE_ATTRIBUTE && wish->attributes[place].value.is_cooperative)
            return launch_together(stream, function, wish->shape, parameters);
    return launch(stream, function, wish->shape, parameters, extra);
}

STREAM_ENTRY(cuLaunchKernel,
             (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
              unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **parameters,
              void **extra),
             ((void)shared_bytes, launch(on, function, (shape_t){grid_x, grid_y, grid_z, block_x, block_y, block_z},
                                         parameters, extra)))

STREAM_ENTRY(cuLaunchCooperativeKernel,
             (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
              unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream,
              void **parameters),
             ((void)shared_bytes,
              launch_together(on, function, (shape_t){grid_x, grid_y, grid_z, block_x, block_y, block_z}, parameters)))

STREAM_ENTRY_AS(cuLaunchKernelEx, cuLaunchKernelEx_ptsz,
                (const CUlaunchConfig *wish, CUfunction function, void **parameters, void **extra),
                wish ? wish->stream : NULL,
                wish ? launch_as_configured(on, wish, function, parameters, extra) : INVALID_VALUE)

/* ---- into graphs ---------------------------------------------------------------------------------------------- */

API CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                  const CUDA_KERNEL_NODE_PARAMS *wish) {
    struct graph_node made = {.type = KERNEL_NODE};
    (void)after, (void)count;
    if (node == NULL || graph == NULL || wish == NULL)
        return INVALID_VALUE;
    CUresult result = make_op(&made.op, wish->function, &wish->shape, wish->parameters, wish->extra);
    if (result != SUCCESS)
        return result;
    *node = graph_add(graph, &made);
    return *node ? SUCCESS : OUT_OF_MEMORY;
}

API CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                     const CUDA_KERNEL_NODE_PARAMS *wish) {
    return cuGraphAddKernelNode(node, graph, after, count, wish);
}
