/* Pools and graph memory: what they reserve, and when they let go of it. */
#include "calibrate.h"

#define RESERVED_NOW 5
#define USED_NOW 7
#define PINNED 1
#define ON_DEVICE 1

enum { GRAPH_USED, GRAPH_USED_MOST, GRAPH_RESERVED, GRAPH_RESERVED_MOST };

static double figure_mib(void *pool, int attribute) {
    uint64_t value = 0;
    MUST(cuda.cuMemPoolGetAttribute(pool, attribute, &value));
    return (double)value / (double)MIB;
}

static void say_pool(const char *when, void *pool) {
    SAY(when, "used %.3f MiB, reserved %.0f MiB", figure_mib(pool, USED_NOW), figure_mib(pool, RESERVED_NOW));
}

static void say_default_pool(void) {
    void *pool;
    pointer_t one, other;
    MUST(cuda.cuDeviceGetDefaultMemPool(&pool, 0));
    say_pool("pool before it is used", pool);
    MUST(cuda.cuMemAllocAsync(&one, 1, LEGACY));
    say_pool("pool with 1 byte", pool);
    MUST(cuda.cuMemAllocAsync(&other, 33 * MIB, LEGACY));
    say_pool("pool with 33 MiB more", pool);
    MUST(cuda.cuMemFreeAsync(other, LEGACY));
    MUST(cuda.cuStreamSynchronize(LEGACY));
    say_pool("pool after they are freed and waited for", pool);
    MUST(cuda.cuMemFreeAsync(one, LEGACY));
    MUST(cuda.cuCtxSynchronize());
    say_pool("pool that is empty", pool);
    SAY_CODE("free from a pool again", cuda.cuMemFreeAsync(one, LEGACY));
    SAY_CODE("default pool destroyed", cuda.cuMemPoolDestroy(pool));
}

static void say_own_pool(void) {
    memory_wish_t wish = {PINNED, 0, ON_DEVICE, 0, {0}};
    void *pool;
    pointer_t pointer;
    MUST(cuda.cuMemPoolCreate(&pool, &wish));
    MUST(cuda.cuMemAllocFromPoolAsync(&pointer, 100 * MIB, pool, LEGACY));
    say_pool("own pool with 100 MiB", pool);
    MUST(cuda.cuMemFree_v2(pointer));
    MUST(cuda.cuMemPoolTrimTo(pool, 0));
    say_pool("own pool after a free and a trim", pool);
    MUST(cuda.cuCtxSynchronize());
    say_pool("own pool after a wait", pool);
    SAY_CODE("own pool asked for more than the card has",
             cuda.cuMemAllocFromPoolAsync(&pointer, (size_t)1 << 42, pool, LEGACY));
    SAY_CODE("own pool destroyed", cuda.cuMemPoolDestroy(pool));
}

static double graph_mib(int attribute) {
    uint64_t value = 0;
    MUST(cuda.cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return (double)value / (double)MIB;
}

static void say_graph_memory(const char *when) {
    SAY(when, "used %.0f MiB, at most %.0f MiB, reserved %.0f MiB, at most %.0f MiB", graph_mib(GRAPH_USED),
        graph_mib(GRAPH_USED_MOST), graph_mib(GRAPH_RESERVED), graph_mib(GRAPH_RESERVED_MOST));
}

static void say_graph(void) {
    alloc_node_t wish = {.pool = {PINNED, 0, ON_DEVICE, 0, {0}}, .bytes = 3 * MIB};
    void *graph, *ready, *alloc, *released;
    MUST(cuda.cuGraphCreate(&graph, 0));
    SAY_CODE("graph allocates", cuda.cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &wish));
    MUST(cuda.cuGraphInstantiateWithFlags(&ready, graph, 0));
    say_graph_memory("graph before its launch");
    SAY_CODE("graph launched", cuda.cuGraphLaunch(ready, LEGACY));
    MUST(cuda.cuCtxSynchronize());
    say_graph_memory("graph after its launch");
    SAY_CODE("graph launched with its memory still there", cuda.cuGraphLaunch(ready, LEGACY));
    SAY_CODE("memory of a graph freed", cuda.cuMemFree_v2(wish.pointer));
    say_graph_memory("graph after its memory is freed");
    SAY_CODE("graph memory trimmed", cuda.cuDeviceGraphMemTrim(0));
    say_graph_memory("graph after a trim");
    MUST(cuda.cuGraphExecDestroy(ready));
    MUST(cuda.cuGraphDestroy(graph));
    MUST(cuda.cuGraphCreate(&graph, 0));
    MUST(cuda.cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &wish));
    MUST(cuda.cuGraphAddMemFreeNode(&released, graph, &alloc, 1, wish.pointer));
    MUST(cuda.cuGraphInstantiateWithFlags(&ready, graph, 0));
    SAY_CODE("graph that frees what it allocates", cuda.cuGraphLaunch(ready, LEGACY));
    SAY_CODE("graph that frees what it allocates, again", cuda.cuGraphLaunch(ready, LEGACY));
    MUST(cuda.cuCtxSynchronize());
    say_graph_memory("graph that frees what it allocates, after it");
    MUST(cuda.cuDeviceGraphMemTrim(0));
    say_graph_memory("graph that frees what it allocates, after a trim");
    MUST(cuda.cuGraphExecDestroy(ready));
    MUST(cuda.cuGraphDestroy(graph));
}

static void say_larger_graph(void) {
    static const size_t sizes_mib[] = {3, 3, 40};
    void *graph, *ready, *node = NULL;
    size_t before = free_bytes();
    MUST(cuda.cuGraphCreate(&graph, 0));
    for (int place = 0; place < 3; place++) {
        alloc_node_t wish = {.pool = {PINNED, 0, ON_DEVICE, 0, {0}}, .bytes = sizes_mib[place] * MIB};
        void *after = node;
        MUST(cuda.cuGraphAddMemAllocNode(&node, graph, &after, after != NULL, &wish));
    }
    MUST(cuda.cuGraphInstantiateWithFlags(&ready, graph, 0));
    MUST(cuda.cuGraphLaunch(ready, LEGACY));
    MUST(cuda.cuCtxSynchronize());
    say_graph_memory("graph with 3, 3 and 40 MiB");
    SAY("graph with 3, 3 and 40 MiB", "takes %.0f MiB of the card", taken_mib(before));
}

void calibrate_pools(int number) {
    (void)number;
    say_default_pool();
    say_own_pool();
    say_graph();
    say_larger_graph();
}
