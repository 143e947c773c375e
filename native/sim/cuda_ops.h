/* How a stream gets past each of its operations, and the marks between them. For the queue alone, which is locked. */

#ifndef TESSERA_SIM_CUDA_OPS_H
#define TESSERA_SIM_CUDA_OPS_H

#include "cuda_queue.h"

/* How far the cards are, as of `now`. Who finds that something must wait says until when in `wake`, if it can. */
extern struct progress {
    int64_t now, wake;
    uint64_t done[MACHINE_MOST_CARDS];
} progress;

void forget_progress(void);

/* Get past the first operation of a stream. Returns whether that was possible by now. */
int issue(stream_t *stream, op_t *op);

/* Without doing it. */
void forget_op(op_t *op);

/* Whether everything that was issued on the stream is done by now. */
int has_passed(stream_t *stream);

void wake_at(int64_t time);

/* When the card may have done the stream's work up to there. */
void wake_at_position(const stream_t *stream, uint64_t position);

/* The later one of both. */
void join(point_t *point, point_t other);

/* ---- cuda_stream_list.c ---- */

/* One more operation that waits in the stream. Returns 0, or -1 where there is no memory. */
int append_op(stream_t *stream, const op_t *op);

/* The first operation is past. */
void pop_op(stream_t *stream);

/* Streams that were destroyed go when they have nothing left to do. */
void bury_streams(void);
void forget_streams(void);

/* ---- cuda_marks.c ---- */

/* With one use; NULL where there is no memory. */
mark_t *make_mark(const card_t *card);
void drop_mark(mark_t *mark);
void issue_mark(mark_t *mark, point_t point);
int has_mark_passed(const mark_t *mark);

/* Stamp those that the card has come past. */
void stamp_marks(int card);
int has_open_marks(void);
void forget_marks(void);

#endif
