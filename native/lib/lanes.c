/* Lanes: the streams of a card on which this process launches, each with its segments under way. */
#define _GNU_SOURCE
#include "compute.h"

#include <stdlib.h>
#include <string.h>

/* Of a lane whose stream was destroyed: what is under way on it is seen to its end. */
#define GONE_STREAM ((CUstream)(uintptr_t)-1)

static timeline_t *timeline_of(gate_t *gate, CUcontext context) {
    for (int one = 0; one < MOST_TIMELINES; one++)
        if (gate->timelines[one].context == context)
            return &gate->timelines[one];
    for (int one = 0; one < MOST_TIMELINES; one++)
        if (gate->timelines[one].context == NULL) {
            gate->timelines[one] = (timeline_t){.context = context};
            return &gate->timelines[one];
        }
    return NULL;
}

static void destroy_events(lane_t *lane) {
    for (int one = 0; one < LANE_SEGMENTS; one++) {
        segment_t *segment = &lane->segments[one];
        if (segment->begin)
            real.cuEventDestroy_v2(segment->begin);
        if (segment->end)
            real.cuEventDestroy_v2(segment->end);
        segment->begin = segment->end = NULL;
    }
    marks_destroy(lane);
}

/* What was under way is paid as expected, because nobody will see it end. */
static void empty(lane_t *lane) {
    segment_abandon(lane);
    for (; lane->tail != lane->head; lane->tail++)
        segment_write_off(lane, &lane->segments[lane->tail % LANE_SEGMENTS]);
}

static int is_of(const lane_t *lane, CUstream stream, CUcontext context) {
    if (lane->stream != stream)
        return 0;
    if (stream == PER_THREAD_STREAM && !pthread_equal(lane->thread, pthread_self()))
        return 0;
    return lane->timeline && lane->timeline->context == context;
}

static int is_idle(const lane_t *lane) {
    return !lane->is_open && lane->head == lane->tail && !lane->launching;
}

static lane_t *new_lane(gate_t *gate) {
    lane_t *oldest = NULL;
    for (int one = 0; one < gate->lane_count; one++)
        if (gate->lanes[one]->stream == GONE_STREAM && is_idle(gate->lanes[one]))
            return gate->lanes[one];
    if (gate->lane_count < MOST_LANES) {
        lane_t *lane = calloc(1, sizeof *lane);
        if (lane)
            gate->lanes[gate->lane_count++] = lane;
        return lane;
    }
    for (int one = 0; one < gate->lane_count; one++)
        if (is_idle(gate->lanes[one]) && (oldest == NULL || gate->lanes[one]->used_ns < oldest->used_ns))
            oldest = gate->lanes[one];
    if (oldest)
        lanes_forget();
    return oldest;
}

lane_t *lane_of(gate_t *gate, CUstream stream, CUcontext context) {
    for (int one = 0; one < gate->lane_count; one++)
        if (is_of(gate->lanes[one], stream, context))
            return gate->lanes[one];
    timeline_t *timeline = timeline_of(gate, context);
    lane_t *lane = timeline ? new_lane(gate) : NULL;
    if (lane == NULL)
        return NULL;
    destroy_events(lane);
    *lane = (lane_t){.stream = stream, .timeline = timeline, .gate = gate, .thread = pthread_self()};
    return lane;
}

/* Returns with the lane free for another stream. */
static void drop(lane_t *lane) {
    empty(lane);
    destroy_events(lane);
    lane->timeline = NULL;
    lane->stream = GONE_STREAM;
    lanes_forget();
}

#define FOR_LANES(gate, lane)                                                                                          \
    for (int place = 0; place < (gate)->lane_count; place++)                                                           \
        for (lane_t *lane = (gate)->lanes[place]; lane; lane = NULL)

void lanes_drop_stream(CUstream stream) {
    for (int card = 0; card < MOST_CARDS; card++) {
        gate_t *gate = gate_at(card);
        if (gate == NULL)
            continue;
        pthread_mutex_lock(&gate->mutex);
        FOR_LANES(gate, lane)
            if (lane->timeline && lane->stream == stream) {
                segment_close(lane, now_ns());
                lane->stream = GONE_STREAM;
                lanes_forget();
            }
        pthread_mutex_unlock(&gate->mutex);
    }
}

void lanes_close_segments(gate_t *gate, int64_t t) {
    FOR_LANES(gate, lane)
        if (!lane->launching)
            segment_close(lane, t);
}

static void drop_timeline(timeline_t *timeline) {
    if (timeline->newest)
        real.cuEventDestroy_v2(timeline->newest);
    *timeline = (timeline_t){0};
}

void lanes_drop_context(CUcontext context) {
    for (int card = 0; context && card < MOST_CARDS; card++) {
        gate_t *gate = gate_at(card);
        if (gate == NULL)
            continue;
        pthread_mutex_lock(&gate->mutex);
        FOR_LANES(gate, lane)
            if (lane->timeline && lane->timeline->context == context)
                drop(lane);
        if (gate->scout_timeline && gate->scout_timeline->context == context)
            gate_recall_scout(gate);
        for (int one = 0; one < MOST_TIMELINES; one++)
            if (gate->timelines[one].context == context)
                drop_timeline(&gate->timelines[one]);
        pthread_mutex_unlock(&gate->mutex);
    }
    sample_forget_context(context);
}
