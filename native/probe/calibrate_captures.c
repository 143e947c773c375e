/* Capture: what a program may do meanwhile, and what becomes of the capture when it does something else. */
#define _GNU_SOURCE
#include "calibrate.h"

#include <pthread.h>

enum { GLOBAL_MODE, THREAD_LOCAL_MODE, RELAXED_MODE };

static struct {
    void *stream, *other, *event, *passed, *module;
    pointer_t memory;
} scene;

static int status_of(void *stream) {
    int status = -1;
    int code = cuda.cuStreamIsCapturing(stream, &status);
    return code ? -code : status;
}

/* What an action says within a capture, what the capture is then, and how it ends. */
static void say_within(const char *name, int mode, int (*action)(void)) {
    void *graph = NULL;
    MUST(cuda.cuStreamBeginCapture_v2(scene.stream, mode));
    MUST(launch(scene.stream, "empty"));
    int code = action(), status = status_of(scene.stream), ended = cuda.cuStreamEndCapture(scene.stream, &graph);
    printf("%s: %d, capture is %d and ends with %d\n", name, code, status, ended);
}

static int launch_more(void) {
    return launch(scene.stream, "empty");
}

static int launch_elsewhere(void) {
    return launch(scene.other, "empty");
}

static int launch_by_default(void) {
    return launch(LEGACY, "empty");
}

static int look_at_default(void) {
    return -status_of(LEGACY);
}

static int query_event(void) {
    return cuda.cuEventQuery(scene.passed);
}

static int wait_for_event(void) {
    return cuda.cuEventSynchronize(scene.passed);
}

static int query_stream(void) {
    return cuda.cuStreamQuery(scene.stream);
}

static int query_other(void) {
    return cuda.cuStreamQuery(scene.other);
}

static int wait_for_stream(void) {
    return cuda.cuStreamSynchronize(scene.stream);
}

static int wait_for_other(void) {
    return cuda.cuStreamSynchronize(scene.other);
}

static int wait_for_all(void) {
    return cuda.cuCtxSynchronize();
}

static int take_memory(void) {
    pointer_t pointer;
    int code = cuda.cuMemAlloc_v2(&pointer, MIB);
    if (code == 0)
        cuda.cuMemFree_v2(pointer);
    return code;
}

static int take_host_memory(void) {
    void *host;
    int code = cuda.cuMemHostAlloc(&host, 4096, 0);
    if (code == 0)
        cuda.cuMemFreeHost(host);
    return code;
}

static int look_at_memory(void) {
    size_t free_now, total;
    return cuda.cuMemGetInfo_v2(&free_now, &total);
}

static int make_and_drop_event(void) {
    return cuda.cuEventDestroy_v2(make_event());
}

static int measure(void) {
    float elapsed;
    return cuda.cuEventElapsedTime(&elapsed, scene.passed, scene.passed);
}

static int load_module(void) {
    void *module;
    return cuda.cuModuleLoadData(&module, kernels);
}

static int load_and_unload_module(void) {
    void *module;
    int code = cuda.cuModuleLoadData(&module, kernels);
    if (code == 0)
        cuda.cuModuleUnload(module);
    return code;
}

static int unload_module(void) {
    return cuda.cuModuleUnload(scene.module);
}

static int copy_at_once(void) {
    char bytes[16] = "";
    return cuda.cuMemcpyHtoD_v2(scene.memory, bytes, sizeof bytes);
}

static int record_elsewhere(void) {
    return cuda.cuEventRecord(scene.event, scene.other);
}

static int query_captured_event(void) {
    MUST(cuda.cuEventRecord(scene.event, scene.stream));
    return cuda.cuEventQuery(scene.event);
}

static int wait_for_outside(void) {
    return cuda.cuStreamWaitEvent(scene.stream, scene.passed, 0);
}

static int fork_and_join(void) {
    MUST(cuda.cuEventRecord(scene.event, scene.stream));
    MUST(cuda.cuStreamWaitEvent(scene.other, scene.event, 0));
    MUST(launch(scene.other, "empty"));
    MUST(cuda.cuEventRecord(scene.event, scene.other));
    return cuda.cuStreamWaitEvent(scene.stream, scene.event, 0);
}

static int fork_only(void) {
    MUST(cuda.cuEventRecord(scene.event, scene.stream));
    MUST(cuda.cuStreamWaitEvent(scene.other, scene.event, 0));
    return launch(scene.other, "empty");
}

static int begin_again(void) {
    return cuda.cuStreamBeginCapture_v2(scene.stream, GLOBAL_MODE);
}

static int relaxed(int (*action)(void)) {
    int mode = RELAXED_MODE;
    MUST(cuda.cuThreadExchangeStreamCaptureMode(&mode));
    int code = action();
    MUST(cuda.cuThreadExchangeStreamCaptureMode(&mode));
    return code;
}

static int query_event_relaxed(void) {
    return relaxed(query_event);
}

static int take_memory_relaxed(void) {
    return relaxed(take_memory);
}

static void *query_in_thread(void *code) {
    void *context;
    MUST(cuda.cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuda.cuCtxSetCurrent(context));
    *(int *)code = query_event();
    return NULL;
}

static int query_event_elsewhere(void) {
    pthread_t thread;
    int code = -1;
    if (pthread_create(&thread, NULL, query_in_thread, &code))
        fail("pthread_create", -1);
    pthread_join(thread, NULL);
    return code;
}

static const struct {
    const char *name;
    int mode;
    int (*action)(void);
} actions[] = {
    {"launch in a capture", GLOBAL_MODE, launch_more},
    {"launch beside a capture", GLOBAL_MODE, launch_elsewhere},
    {"launch by default beside a capture", GLOBAL_MODE, launch_by_default},
    {"look at the default stream beside a capture", GLOBAL_MODE, look_at_default},
    {"query of an event beside a capture", GLOBAL_MODE, query_event},
    {"query of an event beside a capture of the thread", THREAD_LOCAL_MODE, query_event},
    {"query of an event beside a relaxed capture", RELAXED_MODE, query_event},
    {"relaxed query of an event beside a capture", GLOBAL_MODE, query_event_relaxed},
    {"query of an event in another thread", GLOBAL_MODE, query_event_elsewhere},
    {"query of an event in another thread, capture of the thread", THREAD_LOCAL_MODE, query_event_elsewhere},
    {"wait for an event beside a capture", GLOBAL_MODE, wait_for_event},
    {"query of the stream of a capture", RELAXED_MODE, query_stream},
    {"query of a stream beside a capture", GLOBAL_MODE, query_other},
    {"wait for the stream of a capture", RELAXED_MODE, wait_for_stream},
    {"wait for a stream beside a capture", GLOBAL_MODE, wait_for_other},
    {"wait for all beside a capture", RELAXED_MODE, wait_for_all},
    {"alloc beside a capture", GLOBAL_MODE, take_memory},
    {"relaxed alloc beside a capture", GLOBAL_MODE, take_memory_relaxed},
    {"alloc of host memory beside a capture", GLOBAL_MODE, take_host_memory},
    {"look at memory beside a capture", GLOBAL_MODE, look_at_memory},
    {"event made and destroyed beside a capture", GLOBAL_MODE, make_and_drop_event},
    {"elapsed beside a capture", GLOBAL_MODE, measure},
    {"module loaded beside a capture", GLOBAL_MODE, load_and_unload_module},
    {"module loaded and kept beside a capture", GLOBAL_MODE, load_module},
    {"module unloaded beside a capture", GLOBAL_MODE, unload_module},
    {"copy at once beside a capture", GLOBAL_MODE, copy_at_once},
    {"event recorded beside a capture", GLOBAL_MODE, record_elsewhere},
    {"query of an event of a capture", GLOBAL_MODE, query_captured_event},
    {"wait in a capture for an event outside", GLOBAL_MODE, wait_for_outside},
    {"another stream drawn in and back", GLOBAL_MODE, fork_and_join},
    {"another stream drawn in and left", GLOBAL_MODE, fork_only},
    {"capture begun again", GLOBAL_MODE, begin_again},
};

_Static_assert(sizeof actions / sizeof *actions == CAPTURES, "as many as the header says");

static void set_scene(void) {
    scene.stream = make_stream(0);
    scene.other = make_stream(NON_BLOCKING);
    scene.event = make_event();
    scene.passed = make_event();
    MUST(cuda.cuMemAlloc_v2(&scene.memory, MIB));
    MUST(cuda.cuModuleLoadData(&scene.module, kernels));
    MUST(cuda.cuEventRecord(scene.passed, scene.other));
    MUST(cuda.cuEventSynchronize(scene.passed));
}

void calibrate_bare_captures(int number) {
    void *graph;
    (void)number;
    set_scene();
    SAY_CODE("capture of the default stream", cuda.cuStreamBeginCapture_v2(LEGACY, GLOBAL_MODE));
    SAY_CODE("end of no capture", cuda.cuStreamEndCapture(scene.stream, &graph));
    SAY("status without a capture", "%d", status_of(scene.stream));
}

void calibrate_capture(int number) {
    set_scene();
    say_within(actions[number].name, actions[number].mode, actions[number].action);
}
