/* Streams as programs have them: the default ones, their own, and what they can ask of each. */
#define _GNU_SOURCE
#include "cuda_graphs.h"
#include "cuda_queue.h"

#define LEGACY_HANDLE ((CUstream)1)
#define PER_THREAD_HANDLE ((CUstream)2)
#define GREATEST_PRIORITY (-5)
#define VALUE_BYTES_32 4
#define VALUE_BYTES_64 8

CUresult check_context(CUcontext *context) {
    *context = current_context();
    return *context ? (*context)->fault : no_context();
}

static stream_t *legacy_stream(CUcontext context) {
    pthread_mutex_lock(&driver.mutex);
    if (context->legacy == NULL)
        context->legacy = queue_add_stream(context, LEGACY, 0, 0);
    pthread_mutex_unlock(&driver.mutex);
    return context->legacy;
}

CUresult find_stream(CUstream handle, int is_per_thread, stream_t **stream) {
    CUcontext context;
    CUresult result = check_context(&context);
    if (result != SUCCESS)
        return result;
    if (handle == PER_THREAD_HANDLE || (handle == NULL && is_per_thread))
        *stream = queue_stream_of_thread(context);
    else if (handle == NULL || handle == LEGACY_HANDLE)
        *stream = context->legacy ? context->legacy : legacy_stream(context);
    else
        *stream = queue_knows(handle) ? handle : NULL;
    return *stream ? SUCCESS : INVALID_HANDLE;
}

/* ---- making them ---------------------------------------------------------------------------------------------- */

static int within_priorities(int priority) {
    return priority > 0 ? 0 : priority < GREATEST_PRIORITY ? GREATEST_PRIORITY : priority;
}

API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
    CUcontext context;
    if (stream == NULL || flags & ~(unsigned int)NON_BLOCKING)
        return INVALID_VALUE;
    CUresult result = check_context(&context);
    if (result != SUCCESS)
        return result;
    *stream = queue_add_stream(context, CREATED, flags, within_priorities(priority));
    return *stream ? SUCCESS : OUT_OF_MEMORY;
}

API CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
    return cuStreamCreateWithPriority(stream, flags, 0);
}

API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    if (current_context() == NULL)
        return no_context();
    if (least)
        *least = 0;
    if (greatest)
        *greatest = GREATEST_PRIORITY;
    return SUCCESS;
}

/* What is still in it is done all the same. */
API CUresult cuStreamDestroy_v2(CUstream stream) {
    if (stream == NULL || stream == LEGACY_HANDLE || stream == PER_THREAD_HANDLE || !queue_knows(stream))
        return INVALID_HANDLE;
    abandon_capture(stream);
    queue_remove_stream(stream);
    return SUCCESS;
}

API CUresult cuStreamDestroy(CUstream stream) {
    return cuStreamDestroy_v2(stream);
}

/* ---- asking about them ---------------------------------------------------------------------------------------- */

static CUresult synchronize(stream_t *stream) {
    CUresult result = check_unsafe_on(stream);
    if (result == SUCCESS)
        result = queue_drain(stream);
    if (result == SUCCESS)
        trim_pools(stream->context->device);
    return result;
}

static CUresult query(stream_t *stream) {
    CUresult result = check_unsafe_on(stream);
    if (result != SUCCESS)
        return result;
    int is_drained = queue_is_drained(stream);
    return stream->context->fault != SUCCESS ? stream->context->fault : is_drained ? SUCCESS : NOT_READY;
}

static CUresult give_figure(void *to, size_t bytes, uint64_t figure) {
    if (to == NULL)
        return INVALID_VALUE;
    if (bytes == sizeof(int))
        *(int *)to = (int)figure;
    else
        *(uint64_t *)to = figure;
    return SUCCESS;
}

#define FIGURE(to, figure) give_figure(to, sizeof *(to), (uint64_t)(figure))

STREAM_ENTRY(cuStreamSynchronize, (CUstream stream), synchronize(on))
STREAM_ENTRY(cuStreamQuery, (CUstream stream), query(on))
STREAM_ENTRY(cuStreamGetFlags, (CUstream stream, unsigned int *flags), FIGURE(flags, on->flags))
STREAM_ENTRY(cuStreamGetPriority, (CUstream stream, int *priority), FIGURE(priority, on->priority))
STREAM_ENTRY(cuStreamGetId, (CUstream stream, unsigned long long *id), FIGURE(id, on->id))
STREAM_ENTRY(cuStreamGetCtx, (CUstream stream, CUcontext *context), FIGURE(context, (uintptr_t)on->context))
STREAM_ENTRY(cuStreamGetDevice, (CUstream stream, CUdevice *device), FIGURE(device, on->context->device))

/* ---- values and functions ------------------------------------------------------------------------------------- */

static CUresult push_value(stream_t *stream, kind_t kind, CUdeviceptr address, uint64_t value, unsigned int flags,
                           unsigned int bytes) {
    if (address == 0 || address % bytes)
        return INVALID_VALUE;
    op_t op = {.kind = kind, .value = {(volatile void *)(uintptr_t)address, value, flags, bytes}};
    return queue_push(stream, op);
}

#define VALUE_ENTRY(name, kind, type, bytes)                                                                           \
    STREAM_ENTRY(name, (CUstream stream, CUdeviceptr address, type value, unsigned int flags),                         \
                 push_value(on, kind, address, value, flags, bytes))

VALUE_ENTRY(cuStreamWaitValue32, AWAIT_VALUE, uint32_t, VALUE_BYTES_32)
VALUE_ENTRY(cuStreamWaitValue32_v2, AWAIT_VALUE, uint32_t, VALUE_BYTES_32)
VALUE_ENTRY(cuStreamWaitValue64, AWAIT_VALUE, uint64_t, VALUE_BYTES_64)
VALUE_ENTRY(cuStreamWaitValue64_v2, AWAIT_VALUE, uint64_t, VALUE_BYTES_64)
VALUE_ENTRY(cuStreamWriteValue32, WRITE_VALUE, uint32_t, VALUE_BYTES_32)
VALUE_ENTRY(cuStreamWriteValue32_v2, WRITE_VALUE, uint32_t, VALUE_BYTES_32)
VALUE_ENTRY(cuStreamWriteValue64, WRITE_VALUE, uint64_t, VALUE_BYTES_64)
VALUE_ENTRY(cuStreamWriteValue64_v2, WRITE_VALUE, uint64_t, VALUE_BYTES_64)

static CUresult push_call(stream_t *stream, void (*function)(void *), void *argument) {
    op_t op = {.kind = CALL, .call = {function, argument}};
    return function ? queue_push(stream, op) : INVALID_VALUE;
}

STREAM_ENTRY(cuLaunchHostFunc, (CUstream stream, void (*function)(void *), void *argument),
             push_call(on, function, argument))
