/* A program that keeps a card busy, for tests and benchmarks.

       worker SECONDS NANOSECONDS [DEPTH] [MODE]

   Launches a kernel of so many nanoseconds again and again, with DEPTH launches under way (4), and says at its end as
   one line of JSON what it got: how many were done, the time that they asked for, and how many were done in each tenth
   of a second.

   MODE  kernel, ex (cuLaunchKernelEx), coop (cooperative), graph (a graph of four kernels), streams2, streams8,
         streams64 (so many streams in turn), copy (a copy to the card of as long as the kernel), sync (wait after each) */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 1024
#define MOST_WINDOWS 36000
#define WINDOW_NS 100000000
#define KERNELS_IN_GRAPH 4
#define COPY_BYTES_PER_US 50000
#define NON_BLOCKING 1
#define MOST_STREAMS 64

static struct {
    uint64_t ns;
    void *kernel, *streams[MOST_STREAMS], *graph, *host;
    pointer_t card;
    size_t copy_bytes;
} work;

static unsigned int windows[MOST_WINDOWS];

static void launch(void *stream) {
    void *parameters[] = {&work.ns};
    MUST(cuda.cuLaunchKernel(work.kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static void launch_ex(void *stream) {
    void *parameters[] = {&work.ns};
    launch_t wish = {1, 1, 1, 1, 1, 1, 0, stream, NULL, 0};
    MUST(cuda.cuLaunchKernelEx(&wish, work.kernel, parameters, NULL));
}

static void launch_cooperative(void *stream) {
    void *parameters[] = {&work.ns};
    MUST(cuda.cuLaunchCooperativeKernel(work.kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters));
}

static void launch_graph(void *stream) {
    MUST(cuda.cuGraphLaunch(work.graph, stream));
}

static void copy(void *stream) {
    MUST(cuda.cuMemcpyHtoDAsync_v2(work.card, work.host, work.copy_bytes, stream));
}

static const struct {
    const char *name;
    void (*step)(void *);
    int streams, kernels;
} modes[] = {
    {"kernel", launch, 1, 1},
    {"ex", launch_ex, 1, 1},
    {"coop", launch_cooperative, 1, 1},
    {"graph", launch_graph, 1, KERNELS_IN_GRAPH},
    {"streams2", launch, 2, 1},
    {"streams8", launch, 8, 1},
    {"streams64", launch, MOST_STREAMS, 1},
    {"copy", copy, 1, 0},
    {"sync", launch, 1, 1},
};

static int find_mode(const char *name) {
    for (int mode = 0; mode < (int)(sizeof modes / sizeof *modes); mode++)
        if (strcmp(modes[mode].name, name) == 0)
            return mode;
    fail(name, -1);
    return -1;
}

static void make_graph(void) {
    void *graph;
    MUST(cuda.cuStreamBeginCapture_v2(work.streams[0], 0));
    for (int kernel = 0; kernel < KERNELS_IN_GRAPH; kernel++)
        launch(work.streams[0]);
    MUST(cuda.cuStreamEndCapture(work.streams[0], &graph));
    MUST(cuda.cuGraphInstantiateWithFlags(&work.graph, graph, 0));
}

static void prepare_copy(void) {
    work.copy_bytes = work.ns * COPY_BYTES_PER_US / 1000;
    MUST(cuda.cuMemAlloc_v2(&work.card, work.copy_bytes));
    MUST(cuda.cuMemHostAlloc(&work.host, work.copy_bytes, 0));
}

static void prepare(uint64_t ns, int mode) {
    enter_context();
    work.ns = ns;
    work.kernel = find_kernel("spin");
    for (int stream = 0; stream < modes[mode].streams; stream++)
        MUST(cuda.cuStreamCreate(&work.streams[stream], NON_BLOCKING));
    if (modes[mode].step == copy)
        prepare_copy();
    if (modes[mode].step == launch_graph)
        make_graph();
}

/* Returns how many steps were done. */
static uint64_t run(int mode, int depth, int64_t begin, int64_t end) {
    static void *events[DEEPEST];
    uint64_t steps = 0, done = 0;
    for (int place = 0; place < depth; place++)
        MUST(cuda.cuEventCreate(&events[place], 2));
    while (done < steps || now_ns() < end) {
        if (now_ns() < end && steps - done < (uint64_t)depth) {
            void *stream = work.streams[steps % (uint64_t)modes[mode].streams];
            modes[mode].step(stream);
            MUST(cuda.cuEventRecord(events[steps % (uint64_t)depth], stream));
            steps++;
            continue;
        }
        MUST(cuda.cuEventSynchronize(events[done % (uint64_t)depth]));
        windows[(now_ns() - begin) / WINDOW_NS % MOST_WINDOWS]++;
        done++;
    }
    return done;
}

static void report(int mode, uint64_t done, int64_t wall_ns) {
    uint64_t kernels = done * (uint64_t)modes[mode].kernels;
    printf("{\"mode\": \"%s\", \"steps\": %llu, \"launches\": %llu, ", modes[mode].name, (unsigned long long)done,
           (unsigned long long)kernels);
    printf("\"gpu_ns\": %llu, \"wall_ns\": %lld, \"windows\": [", (unsigned long long)(kernels * work.ns),
           (long long)wall_ns);
    for (int64_t window = 0; window <= wall_ns / WINDOW_NS; window++)
        printf("%s%u", window ? ", " : "", windows[window % MOST_WINDOWS]);
    puts("]}");
}

int main(int count, char **words) {
    if (count < 3)
        fail("expected SECONDS NANOSECONDS [DEPTH] [MODE], words", count - 1);
    int mode = find_mode(count > 4 ? words[4] : "kernel");
    int depth = count > 3 ? atoi(words[3]) : 4;
    if (depth < 1 || depth > DEEPEST)
        fail("DEPTH", depth);
    if (strcmp(modes[mode].name, "sync") == 0)
        depth = 1;
    prepare(strtoull(words[2], NULL, 10), mode);
    int64_t begin = now_ns();
    uint64_t done = run(mode, depth, begin, begin + (int64_t)(atof(words[1]) * 1e9));
    report(mode, done, now_ns() - begin);
    return 0;
}
