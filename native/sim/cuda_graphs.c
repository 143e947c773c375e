#define _GNU_SOURCE
#include "cuda_graphs.h"
#include "cuda_blocks.h"

#include <stdlib.h>

CUgraph graph_make(void) {
    return calloc(1, sizeof(struct graph));
}

CUgraphNode graph_add(CUgraph graph, const struct graph_node *node) {
    CUgraphNode made = malloc(sizeof *made);
    if (made == NULL)
        return NULL;
    *made = *node;
    made->next = NULL;
    if (graph->last)
        graph->last->next = made;
    else
        graph->first = made;
    graph->last = made;
    graph->count++;
    if (made->type == ALLOC_NODE)
        hold_graph_block(made->pointer);
    if (made->child && (made->child = graph_copy(made->child)) == NULL)
        made->type = OTHER_NODE;
    return made;
}

void graph_free(CUgraph graph) {
    while (graph->first) {
        CUgraphNode node = graph->first;
        graph->first = node->next;
        if (node->type == ALLOC_NODE)
            drop_graph_block(node->pointer);
        if (node->child)
            graph_free(node->child);
        free(node);
    }
    free(graph);
}

CUgraph graph_copy(CUgraph graph) {
    CUgraph copy = graph_make();
    for (CUgraphNode node = graph->first; copy && node; node = node->next)
        if (graph_add(copy, node) == NULL) {
            graph_free(copy);
            return NULL;
        }
    return copy;
}

API CUresult cuGraphCreate(CUgraph *graph, unsigned int flags) {
    if (graph == NULL || flags)
        return INVALID_VALUE;
    *graph = graph_make();
    return *graph ? SUCCESS : OUT_OF_MEMORY;
}

API CUresult cuGraphDestroy(CUgraph graph) {
    if (graph == NULL)
        return INVALID_VALUE;
    graph_free(graph);
    return SUCCESS;
}

API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    if (graph == NULL || count == NULL)
        return INVALID_VALUE;
    size_t room = nodes ? *count : 0, place = 0;
    for (CUgraphNode node = graph->first; node && place < room; node = node->next)
        nodes[place++] = node;
    *count = nodes ? place : graph->count;
    return SUCCESS;
}

API CUresult cuGraphNodeGetType(CUgraphNode node, int *type) {
    if (node == NULL || type == NULL)
        return INVALID_VALUE;
    *type = node->type;
    return SUCCESS;
}

API CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count) {
    struct graph_node made = {.type = OTHER_NODE, .op = {.kind = KERNEL}};
    (void)after, (void)count;
    if (node == NULL || graph == NULL)
        return INVALID_VALUE;
    *node = graph_add(graph, &made);
    return *node ? SUCCESS : OUT_OF_MEMORY;
}

/* A graph that is a node of another one, as it is now. */
API CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                      CUgraph child) {
    struct graph_node made = {.type = CHILD_NODE, .child = child};
    (void)after, (void)count;
    if (node == NULL || graph == NULL || child == NULL)
        return INVALID_VALUE;
    *node = graph_add(graph, &made);
    return *node ? SUCCESS : OUT_OF_MEMORY;
}

API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph) {
    if (node == NULL || node->child == NULL || graph == NULL)
        return INVALID_VALUE;
    *graph = node->child;
    return SUCCESS;
}
