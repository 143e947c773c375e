#define _GNU_SOURCE
#include "cuda_queue.h"
#include "cuda_graphs.h"
#include "cuda_ops.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define LONGEST_SLEEP_NS 100000000
#define SHORTEST_SLEEP_NS 10000

pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct {
    pthread_once_t once;
    pthread_cond_t changed;     /* by the clock that cards go by */
    char is_used[MACHINE_MOST_CARDS];
    int has_thread, is_thread_idle;
} queue = {.once = PTHREAD_ONCE_INIT};

/* ---- sleeping ------------------------------------------------------------------------------------------------- */

static void set_up(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue.changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void sleep_until(int64_t wake, int64_t now) {
    if (wake - now < SHORTEST_SLEEP_NS) {
        pthread_mutex_unlock(&queue_mutex);
        sched_yield();
        pthread_mutex_lock(&queue_mutex);
        return;
    }
    pthread_once(&queue.once, set_up);
    struct timespec until = {wake / 1000000000, wake % 1000000000};
    pthread_cond_timedwait(&queue.changed, &queue_mutex, &until);
}

/* ---- moving on ------------------------------------------------------------------------------------------------ */

/* Let the cards and the streams do what they can by now. Says in `progress.wake` when to look again at the latest. */
static void move_on(int64_t now) {
    int has_moved = 1;
    progress.now = now;
    progress.wake = now + LONGEST_SLEEP_NS;
    for (int card = 0; card < MACHINE_MOST_CARDS; card++)
        if (queue.is_used[card]) {
            progress.done[card] = time_settle(machine_any_card(card), now);
            stamp_marks(card);
        }
    while (has_moved) {
        has_moved = 0;
        for (stream_t *stream = queue_first_stream(); stream; stream = stream->next)
            while (stream->first && !stream->is_calling && issue(stream, stream->first)) {
                pop_op(stream);
                has_moved = 1;
            }
    }
    bury_streams();
}

static int has_something_under_way(void) {
    for (stream_t *stream = queue_first_stream(); stream; stream = stream->next)
        if (stream->first)
            return 1;
    return has_open_marks();
}

/* Whether there was a function of the program to call. Others may move on while it runs. */
static int call_functions(void) {
    for (stream_t *stream = queue_first_stream(); stream; stream = stream->next) {
        if (stream->first == NULL || stream->first->kind != CALL || stream->is_calling || !has_passed(stream))
            continue;
        op_t *op = stream->first;
        stream->is_calling = 1;
        pthread_mutex_unlock(&queue_mutex);
        op->call.function(op->call.argument);
        pthread_mutex_lock(&queue_mutex);
        stream->is_calling = 0;
        stream->end.time = time_now();
        pop_op(stream);
        pthread_cond_broadcast(&queue.changed);
        return 1;
    }
    return 0;
}

static void *serve(void *nothing) {
    (void)nothing;
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    pthread_mutex_lock(&queue_mutex);
    for (;;) {
        int64_t now = time_now();
        move_on(now);
        if (call_functions())
            continue;
        if (has_something_under_way()) {
            sleep_until(progress.wake, now);
        } else {
            queue.is_thread_idle = 1;
            pthread_cond_wait(&queue.changed, &queue_mutex);
            queue.is_thread_idle = 0;
        }
    }
    return NULL;
}

/* What nobody waits for must happen too. Its thread takes no signals, which are the program's. */
static void wake_thread(void) {
    pthread_once(&queue.once, set_up);
    if (!queue.has_thread) {
        sigset_t all, before;
        pthread_t thread;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        queue.has_thread = pthread_create(&thread, NULL, serve, NULL) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (queue.has_thread)
            pthread_detach(thread);
    }
    pthread_cond_broadcast(&queue.changed);
}

/* ---- pushing -------------------------------------------------------------------------------------------------- */

static CUresult pass_on(stream_t *stream, op_t *op) {
    if (stream->first == NULL && issue(stream, op))
        return SUCCESS;
    if (append_op(stream, op))
        return OUT_OF_MEMORY;
    if (stream->first == stream->last)
        wake_thread();
    return SUCCESS;
}

static mark_t *push_mark(stream_t *stream) {
    mark_t *mark = make_mark(stream->context->card);
    op_t op = {.kind = RECORD, .mark = mark, .submitted = progress.now};
    if (mark == NULL)
        return NULL;
    mark->uses++;
    if (pass_on(stream, &op) != SUCCESS) {
        free(mark);
        return NULL;
    }
    if (mark->state == ISSUED && (!queue.has_thread || queue.is_thread_idle))
        wake_thread();
    return mark;
}

/* Nothing that is pushed to `stream` from now on begins before `other` has come to its end. */
static void follow(stream_t *stream, stream_t *other) {
    if (other->first == NULL && stream->first == NULL) {
        join(&stream->end, other->end);
    } else if (other->first) {
        mark_t *mark = push_mark(other);
        op_t op = {.kind = WAIT, .mark = mark, .submitted = progress.now};
        if (mark)
            pass_on(stream, &op);
    }
}

/* The default stream of all threads waits for the others of its context, and they for it, unless they chose not to. */
static int waits_for(const stream_t *legacy, const stream_t *other) {
    return other != legacy && other->context == legacy->context && !(other->flags & NON_BLOCKING);
}

static void keep_order(stream_t *stream) {
    stream_t *legacy = stream->context->legacy;
    if (stream != legacy && legacy && waits_for(legacy, stream))
        follow(stream, legacy);
    for (stream_t *other = queue_first_stream(); other && stream == legacy; other = other->next)
        if (waits_for(legacy, other))
            follow(stream, other);
}

static int is_full(const stream_t *stream) {
    uint64_t oldest = stream->positions[stream->launches % QUEUE_DEPTH];
    return stream->held_launches >= QUEUE_DEPTH || oldest > progress.done[stream->context->card->index];
}

static void wait_for_room(stream_t *stream) {
    while (is_full(stream)) {
        int64_t now = time_now();
        move_on(now);
        if (!is_full(stream))
            return;
        wake_at_position(stream, stream->positions[stream->launches % QUEUE_DEPTH]);
        sleep_until(progress.wake, now);
    }
}

static CUresult push(stream_t *stream, op_t *op) {
    if (stream->capture)
        return capture_op(stream, op);
    CUresult result = check_implicit(stream);
    if (result != SUCCESS)
        return result;
    if (op->kind == KERNEL)
        wait_for_room(stream);
    progress.now = op->submitted = time_now();
    queue.is_used[stream->context->card->index] = 1;
    if (op->kind > WAIT)        /* what looks at how far the card is */
        move_on(progress.now);
    keep_order(stream);
    return pass_on(stream, op);
}

CUresult queue_push(stream_t *stream, op_t op) {
    pthread_mutex_lock(&queue_mutex);
    CUresult result = push(stream, &op);
    pthread_mutex_unlock(&queue_mutex);
    return result;
}

/* ---- waiting -------------------------------------------------------------------------------------------------- */

typedef int reached_t(void *what);

static void wait_until(reached_t *has_reached, void *what) {
    for (;;) {
        int64_t now = time_now();
        move_on(now);
        if (has_reached(what))
            return;
        sleep_until(progress.wake, now);
    }
}

static int is_done(stream_t *stream) {
    return stream->first == NULL && has_passed(stream);
}

/* The default stream of all threads is done when those are that it would wait for. */
static int is_drained(void *what) {
    stream_t *stream = what;
    int is_all = is_done(stream);
    for (stream_t *other = queue_first_stream(); other && stream->origin == LEGACY; other = other->next)
        is_all &= !waits_for(stream, other) || is_done(other);
    return is_all;
}

static int is_context_drained(void *context) {
    int is_all = 1;
    for (stream_t *stream = queue_first_stream(); stream; stream = stream->next)
        is_all &= stream->context != context || is_done(stream);
    return is_all;
}

static int is_mark_passed(void *mark) {
    return has_mark_passed(mark);
}

CUresult queue_run(stream_t *stream, op_t op) {
    pthread_mutex_lock(&queue_mutex);
    CUresult result = push(stream, &op);
    mark_t *mark = result == SUCCESS && !stream->capture ? push_mark(stream) : NULL;
    if (mark) {
        wait_until(is_mark_passed, mark);
        drop_mark(mark);
    }
    pthread_mutex_unlock(&queue_mutex);
    return result == SUCCESS ? stream->context->fault : result;
}

CUresult queue_drain(stream_t *stream) {
    pthread_mutex_lock(&queue_mutex);
    wait_until(is_drained, stream);
    pthread_mutex_unlock(&queue_mutex);
    return stream->context->fault;
}

CUresult queue_drain_context(CUcontext context) {
    pthread_mutex_lock(&queue_mutex);
    wait_until(is_context_drained, context);
    pthread_mutex_unlock(&queue_mutex);
    return context->fault;
}

int queue_is_drained(stream_t *stream) {
    pthread_mutex_lock(&queue_mutex);
    move_on(time_now());
    int result = is_drained(stream);
    pthread_mutex_unlock(&queue_mutex);
    return result;
}

mark_t *queue_mark(stream_t *stream) {
    pthread_mutex_lock(&queue_mutex);
    wait_for_room(stream);
    progress.now = time_now();
    queue.is_used[stream->context->card->index] = 1;
    keep_order(stream);
    mark_t *mark = push_mark(stream);
    pthread_mutex_unlock(&queue_mutex);
    return mark;
}

int queue_has_passed(mark_t *mark) {
    pthread_mutex_lock(&queue_mutex);
    move_on(time_now());
    int result = has_mark_passed(mark);
    pthread_mutex_unlock(&queue_mutex);
    return result;
}

void queue_wait_for(mark_t *mark) {
    pthread_mutex_lock(&queue_mutex);
    wait_until(is_mark_passed, mark);
    pthread_mutex_unlock(&queue_mutex);
}

void forget_queue(void) {
    memset(&queue, 0, sizeof queue);
    queue.once = (pthread_once_t)PTHREAD_ONCE_INIT;
    pthread_mutex_init(&queue_mutex, NULL);
    forget_streams();
    forget_progress();
}
