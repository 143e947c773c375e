/* What a stream waits for beside other streams: values in memory, functions of the program; and how much can wait. */
#define _GNU_SOURCE
#include "calibrate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define NOT_LESS 0
#define MANY_LAUNCHES 4096
#define PATIENCE_US 600000

static volatile uint32_t *value;
static pointer_t value_on_card;
static atomic_int launched;
static atomic_int calls;

static void call(void *argument) {
    (void)argument;
    calls++;
}

static void say_functions(void) {
    void *stream = make_stream(NON_BLOCKING);
    MUST(spin(stream, 300 * MS));
    SAY_CODE("function after a kernel", cuda.cuLaunchHostFunc(stream, call, NULL));
    SAY("calls while the kernel runs", "%d", calls);
    MUST(cuda.cuStreamSynchronize(stream));
    SAY("calls after the stream was waited for", "%d", calls);
    SAY_CODE("no function", cuda.cuLaunchHostFunc(stream, NULL, NULL));
    MUST(cuda.cuStreamDestroy_v2(stream));
}

static void say_values(void) {
    void *stream = make_stream(NON_BLOCKING), *begin = make_event(), *end = make_event();
    *value = 0;
    SAY_CODE("wait for a value", cuda.cuStreamWaitValue32_v2(stream, value_on_card, 1, NOT_LESS));
    MUST(cuda.cuEventRecord(begin, stream));
    for (int kernel = 0; kernel < 4; kernel++)
        MUST(spin(stream, 5 * MS));
    MUST(cuda.cuEventRecord(end, stream));
    usleep(20000);
    SAY_CODE("query of a stream that waits for a value", cuda.cuStreamQuery(stream));
    *value = 1;
    MUST(cuda.cuStreamSynchronize(stream));
    SAY("elapsed over four kernels of 5 ms that waited", "%.0f", elapsed_ms(begin, end));
    SAY_CODE("write of a value", cuda.cuStreamWriteValue32_v2(stream, value_on_card, 7, 0));
    MUST(cuda.cuStreamSynchronize(stream));
    SAY("value that was written", "%u", *value);
    SAY_CODE("wait for a value at an odd address", cuda.cuStreamWaitValue32_v2(stream, value_on_card + 2, 1, NOT_LESS));
    MUST(cuda.cuStreamDestroy_v2(stream));
}

/* Let go of the stream when no launch has come through for a while. */
static void *release(void *argument) {
    int before = -1;
    while (before != launched) {
        before = launched;
        usleep(PATIENCE_US);
    }
    *(int *)argument = before;
    *value = 1;
    return NULL;
}

static void say_depth(void) {
    void *stream = make_stream(NON_BLOCKING);
    pthread_t releasing;
    int held = 0;
    *value = 0;
    MUST(cuda.cuStreamWaitValue32_v2(stream, value_on_card, 1, NOT_LESS));
    if (pthread_create(&releasing, NULL, release, &held))
        fail("pthread_create", -1);
    for (launched = 0; launched < MANY_LAUNCHES; launched++)
        MUST(launch(stream, "empty"));
    pthread_join(releasing, NULL);
    SAY("launches that a stream takes while it waits", "%d", held / 64 * 64);
    MUST(cuda.cuStreamSynchronize(stream));
    MUST(cuda.cuStreamDestroy_v2(stream));
}

void calibrate_waits(int number) {
    (void)number;
    MUST(cuda.cuMemHostAlloc((void **)&value, 4096, 2));
    MUST(cuda.cuMemHostGetDevicePointer_v2(&value_on_card, (void *)value, 0));
    say_functions();
    say_values();
    say_depth();
    MUST(cuda.cuMemFreeHost((void *)value));
}
