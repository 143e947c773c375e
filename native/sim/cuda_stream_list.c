/* The streams of a process, and what waits in each of them. */
#define _GNU_SOURCE
#include "cuda_ops.h"

#include <stdlib.h>

#define STREAM_MAGIC 0x73747265

/* All of them, guarded by the queue's lock. Old ones are never given back, so that their handles can be told from live
   ones. */
static stream_t *streams, *spare;
static uint64_t last_id;

void forget_streams(void) {
    streams = spare = NULL;
}

stream_t *queue_first_stream(void) {
    return streams;
}

int append_op(stream_t *stream, const op_t *op) {
    op_t *held = malloc(sizeof *held);
    if (held == NULL)
        return -1;
    *held = *op;
    held->next = NULL;
    if (stream->last)
        stream->last->next = held;
    else
        stream->first = held;
    stream->last = held;
    stream->held_launches += held->kind == KERNEL;
    return 0;
}

void pop_op(stream_t *stream) {
    op_t *op = stream->first;
    stream->first = op->next;
    if (stream->first == NULL)
        stream->last = NULL;
    stream->held_launches -= op->kind == KERNEL;
    free(op);
}

static void unlink_stream(stream_t **link) {
    stream_t *stream = *link;
    *link = stream->next;
    stream->next = spare;
    spare = stream;
}

void bury_streams(void) {
    for (stream_t **link = &streams; *link != NULL;) {
        if (queue_knows(*link) || (*link)->first)
            link = &(*link)->next;
        else
            unlink_stream(link);
    }
}

stream_t *queue_add_stream(CUcontext context, origin_t origin, unsigned int flags, int priority) {
    pthread_mutex_lock(&queue_mutex);
    stream_t *stream = spare ? spare : malloc(sizeof *stream);
    if (stream) {
        if (stream == spare)
            spare = stream->next;
        *stream = (stream_t){STREAM_MAGIC, origin, context, flags, priority, .id = ++last_id};
        stream->thread = pthread_self();
        stream->next = streams;
        streams = stream;
    }
    pthread_mutex_unlock(&queue_mutex);
    return stream;
}

int queue_knows(const stream_t *stream) {
    return stream->magic == STREAM_MAGIC;
}

stream_t *queue_stream_of_thread(CUcontext context) {
    stream_t *found = NULL;
    pthread_mutex_lock(&queue_mutex);
    for (stream_t *stream = streams; stream && !found; stream = stream->next)
        if (stream->context == context && stream->origin == OF_THREAD && pthread_equal(stream->thread, pthread_self()))
            found = stream;
    pthread_mutex_unlock(&queue_mutex);
    return found ? found : queue_add_stream(context, OF_THREAD, 0, 0);
}

void queue_remove_stream(stream_t *stream) {
    pthread_mutex_lock(&queue_mutex);
    stream->magic = 0;
    if (!stream->is_calling)
        bury_streams();
    pthread_mutex_unlock(&queue_mutex);
}

void queue_remove_streams(CUcontext context) {
    pthread_mutex_lock(&queue_mutex);
    for (stream_t *stream = streams; stream; stream = stream->next) {
        if (stream->context != context)
            continue;
        while (stream->first && !stream->is_calling) {
            forget_op(stream->first);
            pop_op(stream);
        }
        stream->magic = 0;
    }
    bury_streams();
    context->legacy = NULL;
    pthread_mutex_unlock(&queue_mutex);
}
