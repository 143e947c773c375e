/* Events: when a stream came past a point, which others can wait for. */
#define _GNU_SOURCE
#include "cuda_graphs.h"
#include "cuda_queue.h"

#include <stdlib.h>

#define EVENT_MAGIC 0x65766e74
#define BLOCKING_SYNC 1
#define DISABLE_TIMING 2
#define INTERPROCESS 4
#define EXTERNAL 1
#define NS_PER_MS 1e6

struct event {
    uint32_t magic;
    unsigned int flags;
    CUcontext context;
    mark_t *mark;               /* of its last record; NULL before the first */
    capture_t *_Atomic capture; /* if that was in a captured stream, and when and where it was */
    uint64_t captured;
    stream_t *stream;
    CUevent next;
};

static CUevent spare;           /* never given back, so that an old handle can be told; guarded by the driver's lock */

static int is_event(CUevent event) {
    return event && event->magic == EVENT_MAGIC;
}

API CUresult cuEventCreate(CUevent *event, unsigned int flags) {
    CUcontext context;
    if (event == NULL || flags & ~(unsigned int)(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS))
        return INVALID_VALUE;
    CUresult result = check_context(&context);
    if (result != SUCCESS)
        return result;
    pthread_mutex_lock(&driver.mutex);
    CUevent made = spare;
    if (made)
        spare = made->next;
    pthread_mutex_unlock(&driver.mutex);
    made = made ? made : malloc(sizeof *made);
    if (made == NULL)
        return OUT_OF_MEMORY;
    *made = (struct event){.magic = EVENT_MAGIC, .flags = flags, .context = context};
    *event = made;
    return SUCCESS;
}

API CUresult cuEventDestroy_v2(CUevent event) {
    if (!is_event(event))
        return INVALID_HANDLE;
    queue_set_mark(&event->mark, NULL);
    pthread_mutex_lock(&driver.mutex);
    event->magic = 0;
    event->next = spare;
    spare = event;
    pthread_mutex_unlock(&driver.mutex);
    return SUCCESS;
}

API CUresult cuEventDestroy(CUevent event) {
    return cuEventDestroy_v2(event);
}

/* ---- recording ------------------------------------------------------------------------------------------------ */

static CUresult record(stream_t *stream, CUevent event, unsigned int flags) {
    if (!is_event(event) || event->context->device != stream->context->device)
        return INVALID_HANDLE;
    if (flags & ~(unsigned int)EXTERNAL)
        return INVALID_VALUE;
    event->capture = stream->capture;
    if (stream->capture) {
        event->stream = stream;
        event->captured = stream->captured;
        queue_set_mark(&event->mark, NULL);
        return stream->capture->is_invalid ? CAPTURE_INVALIDATED : SUCCESS;
    }
    mark_t *mark = queue_mark(stream);
    if (mark == NULL)
        return OUT_OF_MEMORY;
    queue_set_mark(&event->mark, mark);
    return SUCCESS;
}

STREAM_ENTRY(cuEventRecord, (CUevent event, CUstream stream), record(on, event, 0))
STREAM_ENTRY(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags), record(on, event, flags))

/* A stream that waits for an event of a capture becomes part of it; one that is part already has the other back. */
static CUresult wait_in_capture(stream_t *stream, CUevent event) {
    capture_t *capture = event->capture;
    if (capture->is_over)
        return INVALID_VALUE;
    if (capture->is_invalid)
        return CAPTURE_INVALIDATED;
    if (stream->capture && stream->capture != capture) {
        capture->is_invalid = stream->capture->is_invalid = 1;
        return CAPTURE_MERGE;
    }
    if (stream->capture == NULL) {
        stream->capture = capture;
        stream->captured = capture->graph->count;
        stream->joined = 0;
    }
    if (event->stream != stream && event->stream->joined < event->captured)
        event->stream->joined = event->captured;
    return SUCCESS;
}

static CUresult wait_event(stream_t *stream, CUevent event, unsigned int flags) {
    if (!is_event(event))
        return INVALID_HANDLE;
    if (flags & ~(unsigned int)EXTERNAL)
        return INVALID_VALUE;
    if (event->capture)
        return wait_in_capture(stream, event);
    if (stream->capture) {
        stream->capture->is_invalid = 1;
        return CAPTURE_ISOLATION;
    }
    mark_t *mark = queue_take_mark(&event->mark);
    return mark ? queue_push(stream, (op_t){.kind = WAIT, .mark = mark}) : SUCCESS;
}

STREAM_ENTRY(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags), wait_event(on, event, flags))

/* ---- looking -------------------------------------------------------------------------------------------------- */

static CUresult check_event(CUevent event) {
    if (!driver.is_ready)
        return NOT_INITIALIZED;
    if (!is_event(event))
        return INVALID_HANDLE;
    capture_t *capture = event->capture;
    if (capture) {
        capture->is_invalid = 1;
        return capture->is_over ? INVALID_VALUE : CAPTURED_EVENT;
    }
    return event->context->fault;
}

/* One that was never recorded has passed. */
static int has_passed(CUevent event, int64_t *stamp) {
    mark_t *mark = queue_take_mark(&event->mark);
    int result = mark == NULL || queue_has_passed(mark);
    if (mark && stamp)
        *stamp = mark->stamp;
    queue_set_mark(&mark, NULL);
    return result;
}

API CUresult cuEventQuery(CUevent event) {
    CUresult result = check_event(event);
    if (result == SUCCESS)
        result = check_unsafe();
    if (result != SUCCESS)
        return result;
    result = has_passed(event, NULL) ? SUCCESS : NOT_READY;
    return event->context->fault != SUCCESS ? event->context->fault : result;
}

API CUresult cuEventSynchronize(CUevent event) {
    CUresult result = check_event(event);
    if (result == SUCCESS)
        result = check_unsafe();
    if (result != SUCCESS)
        return result;
    mark_t *mark = queue_take_mark(&event->mark);
    if (mark)
        queue_wait_for(mark);
    queue_set_mark(&mark, NULL);
    return event->context->fault;
}

API CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
    CUresult result = check_event(from);
    if (result == SUCCESS)
        result = check_event(to);
    if (result != SUCCESS)
        return result;
    if (milliseconds == NULL)
        return INVALID_VALUE;
    if (from->mark == NULL || to->mark == NULL || (from->flags | to->flags) & DISABLE_TIMING)
        return INVALID_HANDLE;
    int64_t begin, end;
    if (!has_passed(from, &begin) || !has_passed(to, &end))
        return NOT_READY;
    *milliseconds = (float)((double)(end - begin) / NS_PER_MS);
    return SUCCESS;
}

API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent from, CUevent to) {
    return cuEventElapsedTime(milliseconds, from, to);
}
