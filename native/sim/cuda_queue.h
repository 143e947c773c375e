/* Streams: what a process has asked its cards to do, in which order, and how far they are.

   Everything that goes into a stream is an operation. One that nothing holds up is passed on at once: kernels to the
   card (card_time), copies to an engine. What is held up waits in its stream, and whoever waits or looks moves it on; a
   thread of the driver does, where nobody else might. A stream's end is a point: a time, or a position in the work of
   the card, whichever comes later. Marks are points that somebody is interested in: events are made of them. */

#ifndef TESSERA_SIM_CUDA_QUEUE_H
#define TESSERA_SIM_CUDA_QUEUE_H

#include "card_time.h"
#include "cuda.h"

#define QUEUE_DEPTH 1023        /* launches of a stream that are not done, before the next one or an event blocks */

typedef struct {
    int64_t time;
    uint64_t position;
} point_t;

typedef struct mark {
    enum { AWAITED, ISSUED, STAMPED } state;
    int uses;
    const card_t *card;
    point_t point;
    int64_t stamp;
    struct mark *next;
} mark_t;

typedef enum { KERNEL, RECORD, WAIT, CALL, AWAIT_VALUE, WRITE_VALUE, COPY, FILL, RELEASE } kind_t;

typedef enum { ON_CARD, TO_CARD, FROM_CARD, ENGINES } engine_t;

/* Lines of a plane, planes of a box, and how far apart they begin at each end. */
typedef struct {
    size_t lines, planes;
    struct {
        size_t line, plane;
    } to, from;
} layout_t;

typedef struct op {
    kind_t kind;
    union {
        struct {
            uint64_t ns;
            int is_trap;
        } kernel;
        mark_t *mark;
        struct {
            void (*function)(void *);
            void *argument;
        } call;
        struct {
            volatile void *address;
            uint64_t value;
            unsigned int flags, bytes;
        } value;
        struct {
            void *to;
            const void *from;
            size_t bytes;
            engine_t engine;
            layout_t layout;
        } copy;
        struct {
            void *to;
            uint32_t value;
            unsigned int width;
            size_t bytes;
        } fill;
        struct {
            void *address;
            size_t bytes;
            const card_t *card;
            uint64_t pages;     /* to give back to it */
        } release;
    };
    int64_t submitted;
    int is_begun;
    int64_t end;
    struct op *next;
} op_t;

typedef enum { CREATED, LEGACY, OF_THREAD } origin_t;

typedef struct stream {
    uint32_t magic;
    origin_t origin;
    CUcontext context;
    unsigned int flags;
    int priority;
    uint64_t id;
    pthread_t thread;
    point_t end;
    op_t *first, *last;
    unsigned int held_launches;
    int is_calling;             /* a function of the program runs */
    uint64_t launches, positions[QUEUE_DEPTH];
    struct capture *capture;
    uint64_t captured, joined;  /* the last node of a stream drawn into a capture, and up to which it is back */
    struct stream *next;
} stream_t;

#define NON_BLOCKING 1

/* Taken by everything below that does not say that it must be held. */
extern pthread_mutex_t queue_mutex;

/* The stream behind a handle in the current context: the default stream of all threads or of this one for NULL. Fails
   where there is no context, where it has failed, or where the handle is none. */
CUresult find_stream(CUstream handle, int is_per_thread, stream_t **stream);

/* A context that can go on. */
CUresult check_context(CUcontext *context);

/* At the end of the stream, or into the graph that the stream is captured for. A launch waits while too many are under
   way. */
CUresult queue_push(stream_t *stream, op_t op);

/* As queue_push, and wait until the stream has done it. */
CUresult queue_run(stream_t *stream, op_t op);

/* Wait until the stream, or all of the context, has done what was pushed so far. */
CUresult queue_drain(stream_t *stream);
CUresult queue_drain_context(CUcontext context);
int queue_is_drained(stream_t *stream);

/* A mark for the end of the stream as it is now. One use. */
mark_t *queue_mark(stream_t *stream);
int queue_has_passed(mark_t *mark);
void queue_wait_for(mark_t *mark);

/* One use more of the mark that is in a place, or NULL; and another mark in its place, whose use goes over to it. */
mark_t *queue_take_mark(mark_t *const *place);
void queue_set_mark(mark_t **place, mark_t *mark);

/* Whether a handle is of a stream that has not been destroyed. */
int queue_knows(const stream_t *stream);

/* The calling thread's own; NULL where there is no memory for it. */
stream_t *queue_stream_of_thread(CUcontext context);

/* All streams, linked by `next`. With the queue locked. */
stream_t *queue_first_stream(void);

stream_t *queue_add_stream(CUcontext context, origin_t origin, unsigned int flags, int priority);
void queue_remove_stream(stream_t *stream);

/* The streams of a context that is over. */
void queue_remove_streams(CUcontext context);

/* In a forked child, where no thread and no work is left. */
void forget_queue(void);

/* Entries that take a stream exist twice: for programs whose default stream is one of all threads, and with _ptsz for
   those with one of each thread. `action` sees the stream as `on`. */
#define STREAM_ENTRY(name, parameters, action) STREAM_ENTRY_AS(name, name##_ptsz, parameters, stream, action)
#define STREAM_ENTRY_AS(name, per_thread, parameters, handle, action)                                                  \
    ONE_STREAM_ENTRY(name, parameters, handle, 0, action)                                                              \
    ONE_STREAM_ENTRY(per_thread, parameters, handle, 1, action)
#define ONE_STREAM_ENTRY(name, parameters, handle, is_per_thread, action)                                              \
    API CUresult name parameters {                                                                                     \
        stream_t *on;                                                                                                  \
        CUresult result = find_stream(handle, is_per_thread, &on);                                                     \
        return result == SUCCESS ? (action) : result;                                                                  \
    }

#endif
