/* Graphs that are ready: what a graph has in it, made fast to launch. */
#define _GNU_SOURCE
#include "../graph_types.h"
#include "cuda_blocks.h"
#include "cuda_graphs.h"

#include <stdlib.h>

#define AUTO_FREE_ON_LAUNCH 1

/* The operations of a graph, as they were when it was made ready. */
typedef struct {
    CUgraph graph;
    uint64_t kernel_ns;         /* of all its kernels, if it has nothing else to do */
    int is_kernels_only, has_memory, frees_first;
} *CUgraphExec;

static void look_through(CUgraphExec ready, CUgraph graph) {
    for (CUgraphNode node = graph->first; node; node = node->next) {
        ready->has_memory |= is_memory(node);
        ready->is_kernels_only &= node->op.kind == KERNEL && !node->op.kernel.is_trap;
        ready->kernel_ns += node->op.kind == KERNEL ? node->op.kernel.ns : 0;
        if (node->child)
            look_through(ready, node->child);
    }
}

API CUresult cuGraphInstantiateWithFlags(CUgraphExec *ready, CUgraph graph, unsigned long long flags) {
    if (ready == NULL || graph == NULL)
        return INVALID_VALUE;
    CUgraphExec made = calloc(1, sizeof *made);
    if (made == NULL || (made->graph = graph_copy(graph)) == NULL) {
        free(made);
        return OUT_OF_MEMORY;
    }
    made->is_kernels_only = 1;
    made->frees_first = flags & AUTO_FREE_ON_LAUNCH;
    look_through(made, made->graph);
    *ready = made;
    return SUCCESS;
}

API CUresult cuGraphInstantiate(CUgraphExec *ready, CUgraph graph, CUgraphNode *failed, char *log, size_t room) {
    if (failed)
        *failed = NULL;
    if (log && room)
        *log = '\0';
    return cuGraphInstantiateWithFlags(ready, graph, 0);
}

API CUresult cuGraphInstantiate_v2(CUgraphExec *ready, CUgraph graph, CUgraphNode *failed, char *log, size_t room) {
    return cuGraphInstantiate(ready, graph, failed, log, room);
}

API CUresult cuGraphExecDestroy(CUgraphExec ready) {
    if (ready == NULL)
        return INVALID_VALUE;
    graph_free(ready->graph);
    free(ready);
    return SUCCESS;
}

static CUresult push_nodes(stream_t *stream, CUgraph graph) {
    CUresult result = SUCCESS;
    for (CUgraphNode node = graph->first; node && result == SUCCESS; node = node->next)
        if (node->child)
            result = push_nodes(stream, node->child);
        else if (!is_memory(node))
            result = queue_push(stream, node->op);
    return result;
}

static CUresult launch(stream_t *stream, CUgraphExec ready) {
    CUresult result = SUCCESS;
    if (ready == NULL)
        return INVALID_VALUE;
    if (ready->has_memory && !stream->capture)
        result = take_graph_memory(ready->graph, stream->context->card, ready->frees_first);
    if (result != SUCCESS)
        return result;
    if (ready->is_kernels_only)
        return queue_push(stream, (op_t){.kind = KERNEL, .kernel = {.ns = ready->kernel_ns}});
    return push_nodes(stream, ready->graph);
}

static CUresult upload(stream_t *stream, CUgraphExec ready) {
    if (ready == NULL)
        return INVALID_VALUE;
    return ready->has_memory ? back_graph_memory(ready->graph, stream->context->card) : SUCCESS;
}

STREAM_ENTRY(cuGraphLaunch, (CUgraphExec ready, CUstream stream), launch(on, ready))
STREAM_ENTRY(cuGraphUpload, (CUgraphExec ready, CUstream stream), upload(on, ready))

static CUresult instantiate(CUgraphExec *ready, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *wish,
                            CUresult (*upload_on)(CUgraphExec, CUstream)) {
    if (wish == NULL)
        return INVALID_VALUE;
    wish->failed = NULL;
    wish->result = 0;
    CUresult result = cuGraphInstantiateWithFlags(ready, graph, wish->flags);
    if (result != SUCCESS || !(wish->flags & UPLOAD_WITH_IT))
        return result;
    result = upload_on(*ready, wish->upload);
    if (result != SUCCESS)
        cuGraphExecDestroy(*ready);
    return result;
}

API CUresult cuGraphInstantiateWithParams(CUgraphExec *ready, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *wish) {
    return instantiate(ready, graph, wish, cuGraphUpload);
}

API CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *ready, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *wish) {
    return instantiate(ready, graph, wish, cuGraphUpload_ptsz);
}
