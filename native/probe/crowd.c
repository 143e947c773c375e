/* Threads that share a card, for tests: each has a stream, launches some kernels, waits for them and thinks.

       crowd SECONDS NANOSECONDS THREADS [BATCH] [THINK_NANOSECONDS]

   At its end one line of JSON, as the worker's, without tenths of a second. */
#include "driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST_THREADS 256

static struct {
    uint64_t ns;
    int batch;
    long think_ns;
    int64_t end;
    void *kernel, *context;
} work;

static void think(void) {
    struct timespec pause = {.tv_sec = work.think_ns / 1000000000, .tv_nsec = work.think_ns % 1000000000};
    if (work.think_ns)
        nanosleep(&pause, NULL);
}

static void *run(void *launches) {
    void *stream, *parameters[] = {&work.ns};
    MUST(cuda.cuCtxSetCurrent(work.context));
    MUST(cuda.cuStreamCreate(&stream, 1));
    while (now_ns() < work.end) {
        for (int launch = 0; launch < work.batch; launch++)
            MUST(cuda.cuLaunchKernel(work.kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
        MUST(cuda.cuStreamSynchronize(stream));
        *(uint64_t *)launches += (uint64_t)work.batch;
        think();
    }
    return NULL;
}

int main(int count, char **words) {
    static pthread_t threads[MOST_THREADS];
    static uint64_t launches[MOST_THREADS];
    if (count < 4)
        fail("expected SECONDS NANOSECONDS THREADS [BATCH] [THINK_NANOSECONDS], words", count - 1);
    int crowd = atoi(words[3]);
    if (crowd < 1 || crowd > MOST_THREADS)
        fail("THREADS", crowd);
    work.ns = strtoull(words[2], NULL, 10);
    work.batch = count > 4 ? atoi(words[4]) : 1;
    work.think_ns = count > 5 ? atol(words[5]) : 0;
    enter_context();
    MUST(cuda.cuDevicePrimaryCtxRetain(&work.context, 0));
    work.kernel = find_kernel("spin");
    int64_t begin = now_ns();
    uint64_t sum = 0;
    work.end = begin + (int64_t)(atof(words[1]) * 1e9);
    for (int thread = 0; thread < crowd; thread++)
        pthread_create(&threads[thread], NULL, run, &launches[thread]);
    for (int thread = 0; thread < crowd; thread++) {
        pthread_join(threads[thread], NULL);
        sum += launches[thread];
    }
    printf("{\"steps\": %llu, \"launches\": %llu, \"gpu_ns\": %llu, \"wall_ns\": %lld, \"windows\": []}\n",
           (unsigned long long)sum, (unsigned long long)sum, (unsigned long long)(sum * work.ns),
           (long long)(now_ns() - begin));
    return 0;
}
