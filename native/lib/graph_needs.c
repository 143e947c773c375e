/* What a graph needs of each card when it runs, from its nodes.

   That is the sum of what they allocate, if none of them can use what another has freed; and it is at least the most
   that is allocated at once when they run one after the other, as they were made. */
#define _GNU_SOURCE
#include "memory.h"

#include <stdlib.h>

#define NODE_OF_GRAPH 4
#define NODE_OF_MEMORY 10
#define NODE_OF_FREEING 11
#define DEEPEST_GRAPH 8
#define GRAPH_GRAIN ((uint64_t)32 << 20)        /* graphs get memory by pieces of that size */

typedef struct {
    graph_need_t *needs;
    int count, room;
} count_t;

static graph_need_t *need_of(count_t *counted, CUdevice device) {
    for (int one = 0; one < counted->count; one++)
        if (counted->needs[one].device == device)
            return &counted->needs[one];
    if (counted->count == counted->room)
        return NULL;
    graph_need_t *need = &counted->needs[counted->count++];
    *need = (graph_need_t){.device = device};
    return need;
}

static int is_allocation(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *wish) {
    int type;
    return real.cuGraphNodeGetType(node, &type) == CUDA_SUCCESS && type == NODE_OF_MEMORY &&
           real.cuGraphMemAllocNodeGetParams(node, wish) == CUDA_SUCCESS;
}

/* Small blocks share pieces, others begin with a piece of their own. */
static uint64_t need_for(const CUDA_MEM_ALLOC_NODE_PARAMS *wish) {
    return round_up(wish->bytes, wish->bytes > GRAPH_GRAIN / 2 ? GRAPH_GRAIN : PAGE);
}

static void allocate(count_t *counted, const CUDA_MEM_ALLOC_NODE_PARAMS *wish) {
    graph_need_t *need = need_of(counted, wish->pool.location.id);
    uint64_t bytes = need_for(wish);
    if (need == NULL)
        return;
    need->sum += bytes;
    need->now += bytes;
    need->most = need->now > need->most ? need->now : need->most;
}

/* What is freed here and was not allocated here makes no room for this graph. */
static void give_back(count_t *counted, CUdeviceptr pointer, const CUgraphNode *before, size_t count) {
    CUDA_MEM_ALLOC_NODE_PARAMS wish;
    for (size_t node = count; node-- > 0;) {
        if (!is_allocation(before[node], &wish) || wish.pointer != pointer)
            continue;
        graph_need_t *need = need_of(counted, wish.pool.location.id);
        if (need)
            need->now -= need_for(&wish);
        return;
    }
}

static void count_graph(count_t *counted, CUgraph graph, int depth);

static void count_node(count_t *counted, const CUgraphNode *nodes, size_t place, int depth) {
    CUDA_MEM_ALLOC_NODE_PARAMS wish;
    CUdeviceptr pointer;
    CUgraph inner;
    int type;
    if (is_allocation(nodes[place], &wish))
        allocate(counted, &wish);
    else if (real.cuGraphNodeGetType(nodes[place], &type) != CUDA_SUCCESS)
        return;
    else if (type == NODE_OF_FREEING && real.cuGraphMemFreeNodeGetParams &&
             real.cuGraphMemFreeNodeGetParams(nodes[place], &pointer) == CUDA_SUCCESS)
        give_back(counted, pointer, nodes, place);
    else if (type == NODE_OF_GRAPH && real.cuGraphChildGraphNodeGetGraph &&
             real.cuGraphChildGraphNodeGetGraph(nodes[place], &inner) == CUDA_SUCCESS)
        count_graph(counted, inner, depth + 1);
}

static void count_graph(count_t *counted, CUgraph graph, int depth) {
    size_t count = 0;
    if (depth > DEEPEST_GRAPH || real.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || count == 0)
        return;
    CUgraphNode *nodes = malloc(count * sizeof *nodes);
    if (nodes && real.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS)
        for (size_t node = 0; node < count; node++)
            count_node(counted, nodes, node, depth);
    free(nodes);
}

int count_graph_needs(CUgraph graph, graph_need_t *needs, int room) {
    count_t counted = {.needs = needs, .room = room};
    if (real.cuGraphGetNodes && real.cuGraphNodeGetType && real.cuGraphMemAllocNodeGetParams)
        count_graph(&counted, graph, 0);
    for (int one = 0; one < counted.count; one++) {
        needs[one].sum = round_up(needs[one].sum, GRAPH_GRAIN);
        needs[one].most = round_up(needs[one].most, GRAPH_GRAIN);
    }
    return counted.count;
}
