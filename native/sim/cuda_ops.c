#define _GNU_SOURCE
#include "cuda_ops.h"
#include "faults.h"

#include <string.h>
#include <sys/mman.h>

#define LOOK_AT_VALUE_NS 20000
#define COPY_BYTES_PER_US 50000
#define FILL_BYTES_PER_US 2000000
#define SHORTEST_NS 2000
#define OS_PAGE 4096
#define TRAP_XID 31
#define LARGE_FILL ((size_t)1 << 20)

struct progress progress;

/* Engines copy between host and card while the card works. Each process has its own. */
static int64_t free_at[MACHINE_MOST_CARDS][ENGINES];

void forget_progress(void) {
    memset(&progress, 0, sizeof progress);
    memset(free_at, 0, sizeof free_at);
    forget_marks();
}

void wake_at(int64_t time) {
    if (time < progress.wake)
        progress.wake = time;
}

void wake_at_position(const stream_t *stream, uint64_t position) {
    wake_at(progress.now + (int64_t)(position - progress.done[stream->context->card->index]));
}

static int64_t later(int64_t one, int64_t other) {
    return one > other ? one : other;
}

void join(point_t *point, point_t other) {
    point->time = later(point->time, other.time);
    point->position = point->position > other.position ? point->position : other.position;
}

/* Whether it is known when the stream comes to its end; from then on `end` is a time. */
static int is_end_known(stream_t *stream) {
    point_t *end = &stream->end;
    if (end->position > progress.done[stream->context->card->index]) {
        wake_at_position(stream, end->position);
        return 0;
    }
    if (end->position)
        *end = (point_t){later(end->time, time_of(stream->context->card, end->position)), 0};
    return 1;
}

int has_passed(stream_t *stream) {
    if (!is_end_known(stream))
        return 0;
    if (stream->end.time > progress.now)
        wake_at(stream->end.time);
    return stream->end.time <= progress.now;
}

/* Work goes to the card when nothing but the card's own work stands before it. */
static int give_to_card(stream_t *stream, const op_t *op, uint64_t ns) {
    if (stream->end.time > progress.now) {
        wake_at(stream->end.time);
        return 0;
    }
    int64_t at = later(stream->end.time, op->submitted);
    stream->end = (point_t){at, time_ask(stream->context->card, ns, at)};
    return 1;
}

static int launch(stream_t *stream, op_t *op) {
    if (!op->is_begun) {
        if (!give_to_card(stream, op, op->kernel.ns))
            return 0;
        stream->positions[stream->launches++ % QUEUE_DEPTH] = stream->end.position;
        op->is_begun = 1;
    }
    if (!op->kernel.is_trap)
        return 1;
    if (!has_passed(stream))
        return 0;
    stream->context->fault = ILLEGAL_ADDRESS;
    time_drop(stream->context->card);
    faults_tell(stream->context->card, TRAP_XID);
    return 1;
}

static int follow_mark(stream_t *stream, op_t *op) {
    mark_t *mark = op->mark;
    if (mark->state == AWAITED)
        return 0;
    if (mark->state == STAMPED) {
        join(&stream->end, (point_t){mark->stamp, 0});
    } else if (mark->card == stream->context->card) {
        join(&stream->end, mark->point);
    } else {
        has_mark_passed(mark);
        return 0;
    }
    drop_mark(mark);
    return 1;
}

static int has_value(const op_t *op) {
    uint64_t wanted = op->value.value;
    uint64_t found = op->value.bytes == 4 ? *(volatile uint32_t *)op->value.address
                                          : *(volatile uint64_t *)op->value.address;
    switch (op->value.flags & 3) {
    case 0: /* not less, as a counter that may wrap around */
        return op->value.bytes == 4 ? (int32_t)(uint32_t)(found - wanted) >= 0 : (int64_t)(found - wanted) >= 0;
    case 1:
        return found == wanted;
    case 2:
        return (found & wanted) != 0;
    default:
        return ~(found | wanted) != 0;
    }
}

static int await_value(stream_t *stream, const op_t *op) {
    if (!has_passed(stream))
        return 0;
    if (!has_value(op)) {
        wake_at(progress.now + LOOK_AT_VALUE_NS);
        return 0;
    }
    stream->end.time = later(progress.now, op->submitted);
    return 1;
}

static int write_value(stream_t *stream, const op_t *op) {
    if (!has_passed(stream))
        return 0;
    if (op->value.bytes == 4)
        *(volatile uint32_t *)op->value.address = (uint32_t)op->value.value;
    else
        *(volatile uint64_t *)op->value.address = op->value.value;
    return 1;
}

/* On an engine of its own, or as work of the card. */
static int begin_copy(stream_t *stream, const op_t *op) {
    uint64_t rate = op->copy.engine == ON_CARD ? FILL_BYTES_PER_US : COPY_BYTES_PER_US;
    uint64_t ns = SHORTEST_NS + op->copy.bytes * op->copy.layout.lines * op->copy.layout.planes * 1000 / rate;
    if (op->copy.engine == ON_CARD)
        return give_to_card(stream, op, ns);
    if (!is_end_known(stream))
        return 0;
    int64_t *engine = &free_at[stream->context->card->index][op->copy.engine];
    int64_t begin = later(later(stream->end.time, op->submitted), *engine);
    stream->end.time = *engine = begin + (int64_t)ns;
    return 1;
}

static int copy(stream_t *stream, op_t *op) {
    if (!op->is_begun && !(op->is_begun = begin_copy(stream, op)))
        return 0;
    if (!has_passed(stream))
        return 0;
    const layout_t *layout = &op->copy.layout;
    for (size_t plane = 0; plane < layout->planes; plane++)
        for (size_t line = 0; line < layout->lines; line++)
            memmove((char *)op->copy.to + plane * layout->to.plane + line * layout->to.line,
                    (const char *)op->copy.from + plane * layout->from.plane + line * layout->from.line, op->copy.bytes);
    return 1;
}

/* Whole pages of zeros cost nothing, so that filling a card does not fill the machine. */
static void fill_bytes(char *to, uint32_t value, unsigned int width, size_t bytes) {
    if (value == 0 && bytes >= LARGE_FILL) {
        char *begin = (char *)round_up((uintptr_t)to, OS_PAGE);
        char *end = (char *)((uintptr_t)(to + bytes) / OS_PAGE * OS_PAGE);
        memset(to, 0, (size_t)(begin - to));
        memset(end, 0, (size_t)(to + bytes - end));
        if (madvise(begin, (size_t)(end - begin), MADV_DONTNEED) == 0)
            return;
    }
    if (width == 1)
        memset(to, (int)value, bytes);
    for (size_t done = 0; width > 1 && done < bytes; done += width)
        memcpy(to + done, &value, width);
}

static int fill(stream_t *stream, op_t *op) {
    if (!op->is_begun) {
        uint64_t ns = SHORTEST_NS + op->fill.bytes * 1000 / FILL_BYTES_PER_US;
        op->is_begun = give_to_card(stream, op, ns);
    }
    if (!op->is_begun || !has_passed(stream))
        return 0;
    fill_bytes(op->fill.to, op->fill.value, op->fill.width, op->fill.bytes);
    return 1;
}

static void release(const op_t *op) {
    munmap(op->release.address, op->release.bytes);
    if (op->release.pages)
        machine_give_back(op->release.card, op->release.pages);
}

int issue(stream_t *stream, op_t *op) {
    switch (op->kind) {
    case KERNEL:
        return launch(stream, op);
    case RECORD:
        stream->end.time = later(stream->end.time, op->submitted);
        issue_mark(op->mark, stream->end);
        drop_mark(op->mark);
        return 1;
    case WAIT:
        return follow_mark(stream, op);
    case CALL: /* by the driver's thread alone */
        return 0;
    case AWAIT_VALUE:
        return await_value(stream, op);
    case WRITE_VALUE:
        return write_value(stream, op);
    case COPY:
        return copy(stream, op);
    case FILL:
        return fill(stream, op);
    case RELEASE:
        if (!has_passed(stream))
            return 0;
        release(op);
        return 1;
    }
    return 1;
}

void forget_op(op_t *op) {
    if (op->kind == RECORD || op->kind == WAIT)
        drop_mark(op->mark);
    if (op->kind == RELEASE)
        release(op);
}
