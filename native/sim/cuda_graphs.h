/* Graphs: operations that are kept to be launched together, and streams whose operations go into one instead of being
   done. A graph's operations are launched in the order in which they came, which is one of those that it allows. */

#ifndef TESSERA_SIM_CUDA_GRAPHS_H
#define TESSERA_SIM_CUDA_GRAPHS_H

#include "cuda_queue.h"

struct graph_node {
    int type;                   /* the driver's number */
    op_t op;
    CUdeviceptr pointer;        /* of memory that is allocated or freed in the graph */
    size_t bytes;
    CUgraph child;              /* a graph in the graph */
    struct graph_node *next;
};

struct graph {
    struct graph_node *first, *last;
    uint64_t count;
};

enum {
    KERNEL_NODE = 0,
    COPY_NODE = 1,
    FILL_NODE = 2,
    CALL_NODE = 3,
    CHILD_NODE = 4,
    OTHER_NODE = 5,
    ALLOC_NODE = 10,
    FREE_NODE = 11,
};

static inline int is_memory(const struct graph_node *node) {
    return node->type == ALLOC_NODE || node->type == FREE_NODE;
}

/* A copy of the node at the end of the graph. Returns NULL where there is no memory. */
CUgraphNode graph_add(CUgraph graph, const struct graph_node *node);
CUgraph graph_make(void);
CUgraph graph_copy(CUgraph graph);
void graph_free(CUgraph graph);

typedef struct capture {
    CUgraph graph;
    stream_t *origin;
    int mode;
    pthread_t thread;
    uint64_t id;
    int is_invalid, is_over;
    struct capture *next;
} capture_t;

/* ---- cuda_capture.c; the first three with the queue locked ---- */

/* An operation of a captured stream becomes a node. */
CUresult capture_op(stream_t *stream, const op_t *op);
CUresult capture_node(stream_t *stream, const struct graph_node *node);

/* Whether work on the stream would depend on a capture without anybody having said so. That ends the capture. */
CUresult check_implicit(stream_t *stream);

/* Whether this thread may make a call that does not go well with a capture. If not, that ends the capture. */
CUresult check_unsafe(void);

/* Whether all of the context can be waited for. If not, that ends its captures. */
CUresult check_no_capture(CUcontext context);

/* The same for a call that waits for the stream or looks whether it is done. */
CUresult check_unsafe_on(stream_t *stream);

/* The stream is no part of its capture any more; if that began with it, it is over. */
void abandon_capture(stream_t *stream);

void forget_captures(void);

#endif
