/* Graphs: what a capture has put into them, and how long they take; and a failure, which comes last. */
#include "calibrate.h"

#define KERNELS 4

static void say_graph_of_kernels(void) {
    void *stream = make_stream(NON_BLOCKING), *graph, *ready, *begin = make_event(), *end = make_event();
    size_t nodes = 0;
    MUST(cuda.cuStreamBeginCapture_v2(stream, 0));
    for (int kernel = 0; kernel < KERNELS; kernel++)
        MUST(spin(stream, 5 * MS));
    MUST(cuda.cuEventRecord(end, stream));
    MUST(cuda.cuStreamEndCapture(stream, &graph));
    MUST(cuda.cuGraphGetNodes(graph, NULL, &nodes));
    SAY("nodes of four kernels and an event", "%zu", nodes);
    SAY_CODE("stream after a capture", cuda.cuStreamQuery(stream));
    SAY_CODE("query of an event of a capture that is over", cuda.cuEventQuery(end));
    SAY_CODE("wait for an event of a capture that is over", cuda.cuStreamWaitEvent(stream, end, 0));
    SAY_CODE("graph made ready", cuda.cuGraphInstantiateWithFlags(&ready, graph, 0));
    MUST(cuda.cuGraphDestroy(graph));
    MUST(cuda.cuGraphLaunch(ready, stream));
    MUST(cuda.cuStreamSynchronize(stream));
    MUST(spin(stream, HEAD_START));
    MUST(cuda.cuEventRecord(begin, stream));
    SAY_CODE("graph launched", cuda.cuGraphLaunch(ready, stream));
    MUST(cuda.cuEventRecord(end, stream));
    MUST(cuda.cuStreamSynchronize(stream));
    SAY("elapsed over a graph of four kernels of 5 ms", "%.0f", elapsed_ms(begin, end));
    MUST(cuda.cuGraphExecDestroy(ready));
    MUST(cuda.cuStreamDestroy_v2(stream));
}

static void say_captured_memory(void) {
    void *stream = make_stream(NON_BLOCKING), *graph, *ready;
    pointer_t pointer = 0;
    size_t nodes = 0;
    MUST(cuda.cuStreamBeginCapture_v2(stream, 0));
    SAY_CODE("alloc in a capture", cuda.cuMemAllocAsync(&pointer, 3 * MIB, stream));
    SAY_CODE("free in a capture", cuda.cuMemFreeAsync(pointer, stream));
    MUST(cuda.cuStreamEndCapture(stream, &graph));
    MUST(cuda.cuGraphGetNodes(graph, NULL, &nodes));
    SAY("nodes of an alloc and a free", "%zu", nodes);
    MUST(cuda.cuGraphInstantiateWithFlags(&ready, graph, 0));
    SAY_CODE("graph with an alloc and a free", cuda.cuGraphLaunch(ready, stream));
    MUST(cuda.cuStreamSynchronize(stream));
    MUST(cuda.cuGraphExecDestroy(ready));
    MUST(cuda.cuGraphDestroy(graph));
    MUST(cuda.cuDeviceGraphMemTrim(0));
}

void calibrate_graphs(int number) {
    (void)number;
    say_graph_of_kernels();
    say_captured_memory();
}

/* From here on nothing works any more. */
void calibrate_failure(int number) {
    (void)number;
    void *stream = make_stream(NON_BLOCKING), *event, *empty = find_kernel("empty"), *module, *function;
    pointer_t pointer;
    size_t free_now, total;
    MUST(cuda.cuModuleLoadData(&module, kernels));
    SAY_CODE("launch of a kernel that fails", launch(stream, "trap"));
    SAY_CODE("wait for a kernel that fails", cuda.cuStreamSynchronize(stream));
    SAY_CODE("function after a failure", cuda.cuModuleGetFunction(&function, module, "empty"));
    SAY_CODE("launch after a failure", cuda.cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    SAY_CODE("alloc after a failure", cuda.cuMemAlloc_v2(&pointer, 1));
    SAY_CODE("event after a failure", cuda.cuEventCreate(&event, 0));
    SAY_CODE("look at memory after a failure", cuda.cuMemGetInfo_v2(&free_now, &total));
    SAY_CODE("wait for all after a failure", cuda.cuCtxSynchronize());
}
