/* Capture: streams whose operations go into a graph, and what must not happen in the meantime. */
#define _GNU_SOURCE
#include "cuda_graphs.h"

#include <stdlib.h>

enum { GLOBAL_MODE, THREAD_LOCAL_MODE, RELAXED_MODE };
enum { NOT_CAPTURED, CAPTURED, INVALIDATED };

/* Those that are under way, guarded by the queue's lock; whether there are any may be looked at without it. Ended ones
   are kept for their events. */
static capture_t *_Atomic captures;
static uint64_t next_id = 1;
static _Thread_local int thread_mode = GLOBAL_MODE;

void forget_captures(void) {
    captures = NULL;
    thread_mode = GLOBAL_MODE;
}

/* ---- what goes in --------------------------------------------------------------------------------------------- */

static int node_type(kind_t kind) {
    switch (kind) {
    case KERNEL:
        return KERNEL_NODE;
    case COPY:
        return COPY_NODE;
    case FILL:
        return FILL_NODE;
    case CALL:
        return CALL_NODE;
    default:
        return OTHER_NODE;
    }
}

CUresult capture_node(stream_t *stream, const struct graph_node *node) {
    if (stream->capture->is_invalid)
        return CAPTURE_INVALIDATED;
    if (graph_add(stream->capture->graph, node) == NULL)
        return OUT_OF_MEMORY;
    stream->captured = stream->capture->graph->count;
    return SUCCESS;
}

CUresult capture_op(stream_t *stream, const op_t *op) {
    struct graph_node node = {.type = node_type(op->kind), .op = *op};
    return capture_node(stream, &node);
}

/* ---- what must not happen ------------------------------------------------------------------------------------- */

static int is_own(const capture_t *capture) {
    return pthread_equal(capture->thread, pthread_self());
}

static int is_prohibited_by(const capture_t *capture) {
    if (thread_mode == RELAXED_MODE || capture->mode == RELAXED_MODE)
        return 0;
    return is_own(capture) || (thread_mode == GLOBAL_MODE && capture->mode == GLOBAL_MODE);
}

CUresult check_unsafe(void) {
    CUresult result = SUCCESS;
    if (captures == NULL)
        return SUCCESS;
    pthread_mutex_lock(&queue_mutex);
    for (capture_t *capture = captures; capture; capture = capture->next)
        if (is_prohibited_by(capture)) {
            capture->is_invalid = 1;
            result = CAPTURE_UNSUPPORTED;
        }
    pthread_mutex_unlock(&queue_mutex);
    return result;
}

/* Whether the stream is the default one, which would wait for the captured one. */
static int would_wait(const stream_t *stream, const capture_t *capture) {
    return stream->origin == LEGACY && capture->origin->context == stream->context &&
           !(capture->origin->flags & NON_BLOCKING);
}

static CUresult check_look(const stream_t *stream) {
    for (const capture_t *capture = captures; capture; capture = capture->next)
        if (would_wait(stream, capture))
            return CAPTURE_IMPLICIT;
    return SUCCESS;
}

CUresult check_implicit(stream_t *stream) {
    CUresult result = check_look(stream);
    for (capture_t *capture = captures; capture && result != SUCCESS; capture = capture->next)
        capture->is_invalid |= would_wait(stream, capture);
    return result;
}

CUresult check_no_capture(CUcontext context) {
    CUresult result = SUCCESS;
    pthread_mutex_lock(&queue_mutex);
    for (capture_t *capture = captures; capture; capture = capture->next)
        if (capture->origin->context == context) {
            capture->is_invalid = 1;
            result = CAPTURE_UNSUPPORTED;
        }
    pthread_mutex_unlock(&queue_mutex);
    return result;
}

CUresult check_unsafe_on(stream_t *stream) {
    if (stream->capture) {
        stream->capture->is_invalid = 1;
        return CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_lock(&queue_mutex);
    CUresult result = check_implicit(stream);
    pthread_mutex_unlock(&queue_mutex);
    return result == SUCCESS ? check_unsafe() : result;
}

API CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    if (mode == NULL || *mode < GLOBAL_MODE || *mode > RELAXED_MODE)
        return INVALID_VALUE;
    int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return SUCCESS;
}

/* ---- from beginning to end ------------------------------------------------------------------------------------ */

static CUresult begin(stream_t *stream, int mode) {
    if (mode < GLOBAL_MODE || mode > RELAXED_MODE)
        return INVALID_VALUE;
    if (stream->origin == LEGACY)
        return CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return ILLEGAL_STATE;
    capture_t *capture = calloc(1, sizeof *capture);
    if (capture == NULL || (capture->graph = graph_make()) == NULL) {
        free(capture);
        return OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&queue_mutex);
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->id = next_id++;
    capture->next = captures;
    captures = capture;
    stream->capture = capture;
    stream->captured = stream->joined = 0;
    pthread_mutex_unlock(&queue_mutex);
    return SUCCESS;
}

/* Its streams are free again. Returns whether all of them have come back to the one that it began with. */
static int leave(capture_t *capture) {
    int is_joined = 1;
    for (stream_t *stream = queue_first_stream(); stream; stream = stream->next) {
        if (stream->capture != capture)
            continue;
        is_joined &= stream == capture->origin || stream->captured <= stream->joined;
        stream->capture = NULL;
    }
    if (captures == capture)
        captures = capture->next;
    for (capture_t *other = captures; other; other = other->next)
        if (other->next == capture)
            other->next = capture->next;
    capture->is_over = 1;
    return is_joined;
}

void abandon_capture(stream_t *stream) {
    pthread_mutex_lock(&queue_mutex);
    capture_t *capture = stream->capture;
    int is_over = capture && capture->origin == stream;
    if (is_over)
        leave(capture);
    stream->capture = NULL;
    pthread_mutex_unlock(&queue_mutex);
    if (is_over)
        graph_free(capture->graph);
}

static CUresult end(stream_t *stream, CUgraph *graph) {
    capture_t *capture = stream->capture;
    if (graph == NULL || capture == NULL)
        return graph ? ILLEGAL_STATE : INVALID_VALUE;
    if (capture->origin != stream)
        return CAPTURE_UNMATCHED;
    if (!is_own(capture) && capture->mode != RELAXED_MODE)
        return CAPTURE_WRONG_THREAD;
    pthread_mutex_lock(&queue_mutex);
    int is_joined = leave(capture);
    pthread_mutex_unlock(&queue_mutex);
    CUresult result = capture->is_invalid ? CAPTURE_INVALIDATED : is_joined ? SUCCESS : CAPTURE_UNJOINED;
    *graph = result == SUCCESS ? capture->graph : NULL;
    if (result != SUCCESS)
        graph_free(capture->graph);
    return result;
}

STREAM_ENTRY(cuStreamBeginCapture, (CUstream stream), begin(on, GLOBAL_MODE))
STREAM_ENTRY(cuStreamBeginCapture_v2, (CUstream stream, int mode), begin(on, mode))
STREAM_ENTRY(cuStreamEndCapture, (CUstream stream, CUgraph *graph), end(on, graph))

/* ---- looking -------------------------------------------------------------------------------------------------- */

typedef struct {
    int *status;
    uint64_t *id;
    CUgraph *graph;
    const CUgraphNode **dependencies;
    const void **edges;
    size_t *count;
} info_t;

/* The default stream cannot be looked at while a stream that it waits for is captured. */
static CUresult look(stream_t *stream, info_t to) {
    const capture_t *capture = stream->capture;
    if (to.status == NULL)
        return INVALID_VALUE;
    pthread_mutex_lock(&queue_mutex);
    CUresult result = check_look(stream);
    pthread_mutex_unlock(&queue_mutex);
    if (result != SUCCESS)
        return result;
    *to.status = capture == NULL ? NOT_CAPTURED : capture->is_invalid ? INVALIDATED : CAPTURED;
    if (to.id && capture)
        *to.id = capture->id;
    if (to.graph && capture)
        *to.graph = capture->graph;
    if (to.dependencies)
        *to.dependencies = capture && capture->graph->last ? (const CUgraphNode *)&capture->graph->last : NULL;
    if (to.edges)
        *to.edges = NULL;
    if (to.count)
        *to.count = capture && capture->graph->last ? 1 : 0;
    return SUCCESS;
}

STREAM_ENTRY(cuStreamIsCapturing, (CUstream stream, int *status), look(on, (info_t){.status = status}))
STREAM_ENTRY(cuStreamGetCaptureInfo, (CUstream stream, int *status, uint64_t *id),
             look(on, (info_t){.status = status, .id = id}))
STREAM_ENTRY(cuStreamGetCaptureInfo_v2,
             (CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
              size_t *count),
             look(on, (info_t){status, id, graph, dependencies, NULL, count}))
STREAM_ENTRY(cuStreamGetCaptureInfo_v3,
             (CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
              const void **edges, size_t *count),
             look(on, (info_t){status, id, graph, dependencies, edges, count}))
