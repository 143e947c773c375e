/* What single calls of the driver cost, and two small programs to be killed. Prints one line of JSON.

       micro init               cuInit and the first context, in milliseconds
       micro launch             a launch that the driver rejects (almost nothing but what stands before it), and real ones
       micro alloc              a pair of alloc and free beside 4,000 live blocks; the same in order of a stream
       micro hold MIB           takes it and waits to be killed
       micro take MIB           takes it and ends

   Entries are looked up as a statically linked runtime does it. Times are in nanoseconds: of many bursts the fastest,
   of many pairs the one in the middle. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define LIVE_BLOCKS 4001        /* odd, so that half a page is free and the pair asks for no page of the card */
#define PAIRS 3000
#define BURSTS 400
#define REJECTED_IN_BURST 1000
#define REAL_IN_BURST 256

typedef unsigned long long address_t;
typedef int launch_t(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static const char kernels[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n    ret;\n}\n";
static void *library;

static void fail(const char *entry, int code) {
    printf("{\"failed\": \"%s answered %d\"}\n", entry, code);
    exit(1);
}

static void *entry_of(const char *name) {
    void *entry = dlsym(library, name);
    if (entry == NULL)
        fail(name, -1);
    return entry;
}

#define ENTRY(type, name) ((type *)(uintptr_t)entry_of(name))
#define CHECK(name, call)                                                                                              \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_)                                                                                                     \
            fail(name, code_);                                                                                         \
    } while (0)

typedef int plain_t(void);
typedef int init_t(unsigned);
typedef int retain_t(void **, int);
typedef int set_t(void *);
typedef int load_t(void **, const void *);
typedef int function_t(void **, void *, const char *);
typedef int stream_t(void **, unsigned);
typedef int alloc_t(address_t *, size_t);
typedef int free_t(address_t);
typedef int alloc_async_t(address_t *, size_t, void *);
typedef int free_async_t(address_t, void *);

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void begin(double *init_ms, double *context_ms) {
    void *context;
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail(dlerror(), 0);
    double start = now_ns();
    CHECK("cuInit", ENTRY(init_t, "cuInit")(0));
    double ready = now_ns();
    CHECK("cuDevicePrimaryCtxRetain", ENTRY(retain_t, "cuDevicePrimaryCtxRetain")(&context, 0));
    CHECK("cuCtxSetCurrent", ENTRY(set_t, "cuCtxSetCurrent")(context));
    *init_ms = (ready - start) / 1e6;
    *context_ms = (now_ns() - ready) / 1e6;
}

static void *make_stream(void) {
    void *stream;
    CHECK("cuStreamCreate", ENTRY(stream_t, "cuStreamCreate")(&stream, 1));
    return stream;
}

/* The fastest burst, for each launch in it. A grid of 0 blocks is rejected. */
static double fastest_burst(void *function, void *stream, unsigned blocks, int launches) {
    launch_t *launch = ENTRY(launch_t, "cuLaunchKernel");
    plain_t *synchronize = ENTRY(plain_t, "cuCtxSynchronize");
    double fastest = 1e18;
    for (int burst = 0; burst < BURSTS; burst++) {
        double start = now_ns();
        for (int one = 0; one < launches; one++)
            launch(function, blocks, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
        double taken = (now_ns() - start) / launches;
        fastest = taken < fastest ? taken : fastest;
        synchronize();
    }
    return fastest;
}

static void launch(void) {
    void *module, *function;
    CHECK("cuModuleLoadData", ENTRY(load_t, "cuModuleLoadData")(&module, kernels));
    CHECK("cuModuleGetFunction", ENTRY(function_t, "cuModuleGetFunction")(&function, module, "nothing"));
    void *stream = make_stream();
    double rejected = fastest_burst(function, stream, 0, REJECTED_IN_BURST);
    double enqueued = fastest_burst(function, stream, 1, REAL_IN_BURST);
    printf("{\"rejected_ns\": %.1f, \"enqueued_ns\": %.1f}\n", rejected, enqueued);
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double middle(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

static double pair_beside_live_blocks(void) {
    static address_t live[LIVE_BLOCKS];
    static double taken[PAIRS];
    alloc_t *take = ENTRY(alloc_t, "cuMemAlloc_v2");
    free_t *give_back = ENTRY(free_t, "cuMemFree_v2");
    address_t block;
    for (int one = 0; one < LIVE_BLOCKS; one++)
        CHECK("cuMemAlloc", take(&live[one], MIB));
    for (int pair = 0; pair < PAIRS; pair++) {
        double start = now_ns();
        CHECK("cuMemAlloc", take(&block, MIB));
        give_back(block);
        taken[pair] = now_ns() - start;
    }
    for (int one = LIVE_BLOCKS - 1; one >= 0; one--)
        CHECK("cuMemFree", give_back(live[one]));
    return middle(taken, PAIRS);
}

static double pair_in_stream(void) {
    static double taken[PAIRS];
    alloc_async_t *take = ENTRY(alloc_async_t, "cuMemAllocAsync");
    free_async_t *give_back = ENTRY(free_async_t, "cuMemFreeAsync");
    set_t *synchronize = ENTRY(set_t, "cuStreamSynchronize");
    void *stream = make_stream();
    address_t block;
    for (int pair = -200; pair < PAIRS; pair++) {
        double start = now_ns();
        CHECK("cuMemAllocAsync", take(&block, MIB, stream));
        CHECK("cuMemFreeAsync", give_back(block, stream));
        if (pair >= 0)
            taken[pair] = now_ns() - start;
        if (pair % 256 == 0)
            synchronize(stream);
    }
    return middle(taken, PAIRS);
}

static void take(const char *mib) {
    address_t block;
    CHECK("cuMemAlloc", ENTRY(alloc_t, "cuMemAlloc_v2")(&block, (size_t)atol(mib) * MIB));
    printf("{\"taken_mib\": %s}\n", mib);
    fflush(stdout);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "init";
    double init_ms, context_ms;
    begin(&init_ms, &context_ms);
    if (strcmp(what, "init") == 0)
        printf("{\"init_ms\": %.2f, \"context_ms\": %.2f}\n", init_ms, context_ms);
    else if (strcmp(what, "launch") == 0)
        launch();
    else if (strcmp(what, "alloc") == 0) {
        double beside = pair_beside_live_blocks(), in_stream = pair_in_stream();
        printf("{\"pair_ns\": %.1f, \"async_pair_ns\": %.1f}\n", beside, in_stream);
    } else if (count > 2) {
        take(words[2]);
        if (strcmp(what, "hold") == 0)
            pause();
    }
    return 0;
}
