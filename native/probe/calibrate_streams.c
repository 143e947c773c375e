/* Streams and events: what comes after what, how long it takes, and what a program is told meanwhile. */
#define _GNU_SOURCE
#include "calibrate.h"

#include <unistd.h>

#define DISABLE_TIMING 2
#define COPY_BYTES (64 * MIB)

static void say_elapsed(void) {
    void *stream = make_stream(NON_BLOCKING), *begin = make_event(), *end = make_event(), *never = make_event();
    void *untimed;
    float elapsed;
    MUST(cuda.cuEventCreate(&untimed, DISABLE_TIMING));
    MUST(spin(stream, HEAD_START));
    MUST(cuda.cuEventRecord(begin, stream));
    SAY_CODE("launch", spin(stream, 20 * MS));
    MUST(cuda.cuEventRecord(end, stream));
    SAY_CODE("query of a stream that is busy", cuda.cuStreamQuery(stream));
    SAY_CODE("query of an event that has not passed", cuda.cuEventQuery(end));
    SAY_CODE("elapsed to an event that has not passed", cuda.cuEventElapsedTime(&elapsed, begin, end));
    SAY_CODE("query of an event that was never recorded", cuda.cuEventQuery(never));
    SAY_CODE("wait for an event", cuda.cuEventSynchronize(end));
    SAY_CODE("query of a stream that is done", cuda.cuStreamQuery(stream));
    SAY("elapsed over a kernel of 20 ms", "%.1f", elapsed_ms(begin, end));
    SAY("elapsed backwards", "%.1f", elapsed_ms(end, begin));
    SAY_CODE("elapsed from an event that was never recorded", cuda.cuEventElapsedTime(&elapsed, never, end));
    MUST(cuda.cuEventRecord(untimed, stream));
    MUST(cuda.cuEventSynchronize(untimed));
    SAY_CODE("elapsed to an event without time", cuda.cuEventElapsedTime(&elapsed, begin, untimed));
    MUST(cuda.cuStreamDestroy_v2(stream));
}

static void say_back_to_back(void) {
    void *stream = make_stream(NON_BLOCKING), *begin = make_event(), *end = make_event();
    MUST(spin(stream, HEAD_START));
    MUST(cuda.cuEventRecord(begin, stream));
    for (int kernel = 0; kernel < 10; kernel++)
        MUST(spin(stream, 2 * MS));
    MUST(cuda.cuEventRecord(end, stream));
    MUST(cuda.cuStreamSynchronize(stream));
    SAY("elapsed over ten kernels of 2 ms", "%.0f", elapsed_ms(begin, end));
    MUST(cuda.cuStreamDestroy_v2(stream));
}

/* Whether what is recorded in `second` has passed while `first` is still busy. */
static void say_independence(const char *name, void *first, void *second) {
    void *event = make_event();
    MUST(spin(first, 300 * MS));
    MUST(cuda.cuEventRecord(event, second));
    usleep(10000);
    SAY(name, "%d while the other is %d", cuda.cuEventQuery(event), cuda.cuStreamQuery(first));
    MUST(cuda.cuCtxSynchronize());
}

static void say_default_stream(void) {
    void *blocking = make_stream(0), *other = make_stream(NON_BLOCKING);
    say_independence("default stream after a stream", blocking, LEGACY);
    say_independence("stream after the default stream", LEGACY, blocking);
    say_independence("default stream after a stream that does not wait", other, LEGACY);
    say_independence("stream that does not wait after the default stream", LEGACY, other);
    say_independence("stream after another stream", blocking, other);
    MUST(cuda.cuStreamDestroy_v2(blocking));
    MUST(cuda.cuStreamDestroy_v2(other));
}

static void say_event_order(void) {
    void *one = make_stream(NON_BLOCKING), *other = make_stream(NON_BLOCKING);
    void *begin = make_event(), *middle = make_event(), *end = make_event();
    MUST(spin(one, HEAD_START));
    MUST(cuda.cuEventRecord(begin, one));
    MUST(spin(one, 20 * MS));
    MUST(cuda.cuEventRecord(middle, one));
    SAY_CODE("wait of a stream for an event", cuda.cuStreamWaitEvent(other, middle, 0));
    MUST(cuda.cuEventRecord(end, other));
    SAY_CODE("query of a stream that waits", cuda.cuStreamQuery(other));
    MUST(cuda.cuStreamSynchronize(other));
    SAY("elapsed in a stream that waited", "%.0f", elapsed_ms(begin, end));
    MUST(cuda.cuStreamDestroy_v2(one));
    MUST(cuda.cuStreamDestroy_v2(other));
}

static void say_copy_beside(void) {
    void *busy = make_stream(NON_BLOCKING), *copying = make_stream(NON_BLOCKING), *host, *begin = make_event();
    void *end = make_event();
    pointer_t card;
    MUST(cuda.cuMemHostAlloc(&host, COPY_BYTES, 0));
    MUST(cuda.cuMemAlloc_v2(&card, COPY_BYTES));
    MUST(cuda.cuMemcpyHtoDAsync_v2(card, host, COPY_BYTES, copying));
    MUST(cuda.cuStreamSynchronize(copying));
    MUST(spin(busy, 1000 * MS));
    MUST(cuda.cuEventRecord(begin, copying));
    MUST(cuda.cuMemcpyHtoDAsync_v2(card, host, COPY_BYTES, copying));
    MUST(cuda.cuEventRecord(end, copying));
    MUST(cuda.cuStreamSynchronize(copying));
    SAY("copy beside a kernel", "done while the kernel is %d", cuda.cuStreamQuery(busy));
    double ms = elapsed_ms(begin, end);
    SAY("copy of 64 MiB", "%s", ms > 0.9 && ms < 3 ? "about a millisecond or two" : "of another order");
    MUST(cuda.cuCtxSynchronize());
    MUST(cuda.cuMemFree_v2(card));
    MUST(cuda.cuMemFreeHost(host));
}

static void say_launches(void) {
    void *stream = make_stream(NON_BLOCKING), *function, *module;
    const char *name = "";
    SAY_CODE("function that is not there", cuda.cuModuleGetFunction(&function, NULL, "spin"));
    MUST(cuda.cuModuleLoadData(&module, kernels));
    SAY_CODE("function of another name", cuda.cuModuleGetFunction(&function, module, "spun"));
    SAY_CODE("module of other text", cuda.cuModuleLoadData(&function, "tessera"));
    SAY_CODE("module of no text", cuda.cuModuleLoadData(&function, ""));
    MUST(cuda.cuFuncGetName(&name, find_kernel("empty")));
    SAY("name of a function", "%s", name);
    void *empty = find_kernel("empty");
    SAY_CODE("launch of no blocks", cuda.cuLaunchKernel(empty, 0, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    SAY_CODE("launch of no threads", cuda.cuLaunchKernel(empty, 1, 1, 1, 0, 1, 1, 0, stream, NULL, NULL));
    SAY_CODE("launch of too many threads", cuda.cuLaunchKernel(empty, 1, 1, 1, 2048, 1, 1, 0, stream, NULL, NULL));
    SAY_CODE("launch of too many rows", cuda.cuLaunchKernel(empty, 1, 70000, 1, 1, 1, 1, 0, stream, NULL, NULL));
    SAY_CODE("launch of no function", cuda.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    SAY_CODE("launch as configured", cuda.cuLaunchKernelEx(&(launch_t){1, 1, 1, 32, 1, 1, 0, stream, NULL, 0}, empty,
                                                           NULL, NULL));
    SAY_CODE("cooperative launch", cuda.cuLaunchCooperativeKernel(empty, 8, 1, 1, 32, 1, 1, 0, stream, NULL));
    SAY_CODE("cooperative launch that is too large",
             cuda.cuLaunchCooperativeKernel(empty, 100000, 1, 1, 1024, 1, 1, 0, stream, NULL));
    MUST(cuda.cuStreamSynchronize(stream));
    SAY_CODE("no stream destroyed", cuda.cuStreamDestroy_v2(NULL));
    MUST(cuda.cuModuleUnload(module));
    MUST(cuda.cuStreamDestroy_v2(stream));
}

void calibrate_streams(int number) {
    (void)number;
    say_launches();
    say_elapsed();
    say_back_to_back();
    say_default_stream();
    say_event_order();
    say_copy_beside();
}
