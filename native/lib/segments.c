/* Segments: launches of a stream between two events, and what they cost of the card's time.

   Elapsed time is the card's time as long as the stream had work waiting at both ends of the segment. A stream that is
   fed launch by launch has gaps, which are not paid: then launches count with what they are known to take. The same is
   so while other tenants use the card beside this one, because their time is in the elapsed time too. Time that streams
   and processes of one tenant use together is paid once, and says of a single launch only that it took no longer. */
#define _GNU_SOURCE
#include "compute.h"

#define BACKLOG_NS 60000.0
#define DRIFT 50e-6             /* by which the card's clock and the host's may go apart */
#define LONGEST_GAP_MS 2000.0f  /* beyond, events in single precision tell too little */
#define NO_LAG 1e30

/* ---- begin and end -------------------------------------------------------------------------------------------- */

/* A thread's own stream is another one for every thread, and the default stream one for every context. */
static int can_record(const lane_t *lane) {
    CUcontext current = NULL;
    if (captures_open && stream_is_capturing(lane->stream))
        return 0;
    if (lane->stream == PER_THREAD_STREAM)
        return pthread_equal(lane->thread, pthread_self());
    if (lane->stream != NULL && lane->stream != LEGACY_STREAM)
        return 1;
    return real.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == lane->timeline->context;
}

static int has_events(segment_t *segment) {
    return (segment->begin || real.cuEventCreate(&segment->begin, 0) == CUDA_SUCCESS) &&
           (segment->end || real.cuEventCreate(&segment->end, 0) == CUDA_SUCCESS);
}

static uint8_t has_company(const lane_t *lane, int64_t t) {
    const tenancy_t *tenancy = &lane->gate->tenancy;
    int64_t own = (int64_t)atomic_load(&tenancy->self->in_flight_ns);
    return lane->gate->in_flight_ns > lane->in_flight_ns || tenant_under_way(tenancy->file, tenancy->own, t) > own;
}

void segment_open(lane_t *lane, int64_t t, int64_t room_ns) {
    segment_t *segment = &lane->segments[lane->head % LANE_SEGMENTS];
    lane->is_open = 1;
    lane->left_ns = room_ns;
    lane->until_ns = t + SEGMENT_NS;
    segment->expected_ns = 0;
    segment->launches = 0;
    lane_hand_passed_to(lane, segment);
    segment->room = lane_room(lane);
    segment->part_count = 0;
    segment->is_first = 0;
    segment->is_sampled = 0;
    segment->has_company = has_company(lane, t);
    segment->is_measured = has_events(segment) && real.cuEventRecord(segment->begin, lane->stream) == CUDA_SUCCESS;
    segment->opened_ns = t;
    segment->opened_by_ns = now_ns();
}

void segment_add(lane_t *lane, cost_t *cost, int64_t t) {
    segment_t *segment = &lane->segments[lane->head % LANE_SEGMENTS];
    int64_t ns = (int64_t)cost->ns;
    int one = 0;
    while (one < segment->part_count && segment->parts[one].cost != cost)
        one++;
    if (one == segment->part_count && one < MOST_PARTS)
        segment->parts[segment->part_count++] = (part_t){cost, cost->ns};
    cost->is_awaited = cost->seen == 0;
    segment->is_first |= cost->is_awaited;
    segment->expected_ns += ns;
    segment->launches++;
    lane->pending++;
    lane->left_ns -= ns;
    lane->used_ns = t;
    lane->in_flight_ns += ns;
    lane->gate->in_flight_ns += ns;
    lane->gate->launched_ns = t;
}

static void leave_flight(lane_t *lane, const segment_t *segment) {
    lane->pending -= segment->launches + segment->passed;
    lane->in_flight_ns -= segment->expected_ns;
    lane->gate->in_flight_ns -= segment->expected_ns;
}

void segment_write_off(lane_t *lane, segment_t *segment) {
    for (int one = 0; one < segment->part_count; one++)
        segment->parts[one].cost->is_awaited = 0;
    leave_flight(lane, segment);
    gate_pay(lane->gate, segment->expected_ns);
}

void segment_abandon(lane_t *lane) {
    segment_t *segment = &lane->segments[lane->head % LANE_SEGMENTS];
    if (!lane->is_open)
        return;
    lane->is_open = 0;
    lane_take_passed_from(lane, segment);
    segment_write_off(lane, segment);
    sample_end(lane);
}

void segment_close(lane_t *lane, int64_t t) {
    segment_t *segment = &lane->segments[lane->head % LANE_SEGMENTS];
    if (!lane->is_open)
        return;
    int has_work = segment->part_count > 0 || segment->is_first, has_room = lane->head - lane->tail < LANE_SEGMENTS - 1;
    if (!has_work || !has_room || !segment->is_measured || lane->timeline == NULL || !can_record(lane) ||
        real.cuEventRecord(segment->end, lane->stream) != CUDA_SUCCESS) {
        segment_abandon(lane);
        return;
    }
    segment->closed_ns = t;
    segment->has_company |= has_company(lane, t);
    segment->is_cut = lane->launching > 0;
    segment->closed_by_ns = now_ns();
    segment->is_sampled = (uint8_t)sample_end(lane);
    lane->head++;
    lane->is_open = 0;
}

/* ---- when they are done --------------------------------------------------------------------------------------- */

/* When the segment ended, on the scale of the card's clock put to the host's, and how late that is. */
static double place_on_timeline(timeline_t *timeline, segment_t *segment, double elapsed, int64_t t) {
    float since_ms = 0;
    double end;
    if (timeline->newest == NULL) {
        timeline->lag_ns = NO_LAG;
        end = (double)segment->closed_ns;
        if (real.cuEventCreate(&timeline->newest, 0) != CUDA_SUCCESS)
            timeline->newest = NULL;
    } else if (real.cuEventElapsedTime(&since_ms, timeline->newest, segment->end) != CUDA_SUCCESS ||
               since_ms > LONGEST_GAP_MS || since_ms < -LONGEST_GAP_MS) {
        timeline->lag_ns = NO_LAG;
        end = (double)segment->closed_ns;
    } else {
        end = timeline->newest_ns + (double)since_ms * 1e6;
    }
    if (timeline->newest && (timeline->lag_ns == NO_LAG || end > timeline->newest_ns)) {
        CUevent newest = segment->end;
        segment->end = timeline->newest;
        timeline->newest = newest;
        timeline->newest_ns = end;
    }
    double late_begin = end - elapsed - (double)segment->opened_ns, late_end = end - (double)segment->closed_ns;
    timeline->lag_ns += (double)(t - timeline->looked_ns) * DRIFT;
    timeline->looked_ns = t;
    timeline->lag_ns = late_begin < timeline->lag_ns ? late_begin : timeline->lag_ns;
    timeline->lag_ns = late_end < timeline->lag_ns ? late_end : timeline->lag_ns;
    return end - timeline->lag_ns;
}

static void learn(segment_t *segment, double measured, int is_disturbed) {
    if (segment->expected_ns > 0)
        costs_learn(segment->parts, segment->part_count, measured / (double)segment->expected_ns, is_disturbed);
}

/* A stream with gaps: from the end of the segment on the card was busy until the last launch was done, and before that
   with whatever did not fit in there. With company all that may have been others' work, so it did not take its part. */
static double cost_with_gaps(gate_t *gate, const segment_t *segment, double elapsed, double end) {
    int64_t whole = (int64_t)elapsed, done = (int64_t)end, rest = within(done - segment->closed_by_ns, 0, whole);
    int64_t before = within(segment->expected_ns - (segment->has_company ? 0 : rest), 0, whole - rest);
    if (segment->has_company)
        return (double)budget_unpaid(&gate->tenancy, done - rest - before, done);
    return (double)(budget_unpaid(&gate->tenancy, done - rest, done) + before);
}

/* What the segment has cost, and what its launches are held to take from now on. */
static double judge(gate_t *gate, segment_t *segment, double elapsed, double end, int is_disturbed) {
    double begin = end - elapsed, expected = (double)segment->expected_ns;
    double late_begin = begin - (double)segment->opened_by_ns, late_end = end - (double)segment->closed_by_ns;
    int is_backlogged = late_begin > BACKLOG_NS && late_end > BACKLOG_NS;
    if (segment->is_sampled && elapsed <= 2 * expected) {
        learn(segment, elapsed, segment->has_company);
        return elapsed;
    }
    if (segment->is_first || (!is_disturbed && is_backlogged)) {
        learn(segment, elapsed, is_disturbed || segment->has_company);
        return (double)budget_unpaid(&gate->tenancy, (int64_t)begin, (int64_t)end);
    }
    int is_bounded = elapsed < expected && (!is_disturbed || segment->part_count == 1);
    if (is_bounded || (is_disturbed && is_backlogged))
        learn(segment, elapsed, 1);
    else if (!is_disturbed && !segment->has_company && late_end > expected)     /* so long at least it took */
        learn(segment, late_end < elapsed ? late_end : elapsed, 0);
    gate->wants_sample = 1;
    double at_most = elapsed < expected ? elapsed : expected;
    if (is_disturbed && segment->has_company)
        return (double)budget_unpaid(&gate->tenancy, (int64_t)(end - at_most), (int64_t)end);
    if (is_disturbed)
        return at_most;
    return cost_with_gaps(gate, segment, elapsed, end);
}

static void settle(lane_t *lane, segment_t *segment, int64_t t) {
    gate_t *gate = lane->gate;
    float elapsed_ms = 0;
    CUresult result = real.cuEventElapsedTime(&elapsed_ms, segment->begin, segment->end);
    double elapsed = (double)elapsed_ms * 1e6;
    int is_lacking = segment->is_cut && elapsed < (double)segment->expected_ns;
    if (result != CUDA_SUCCESS || is_lacking) {
        segment_write_off(lane, segment);
        return;
    }
    double end = place_on_timeline(lane->timeline, segment, elapsed, t);
    int is_disturbed = tenant_is_disturbed(&gate->tenancy, t);
    double cost = judge(gate, segment, elapsed, end, is_disturbed);
    leave_flight(lane, segment);
    gate->done_ns = (int64_t)end;
    gate_pay(gate, (int64_t)cost);
}

void segments_collect(gate_t *gate, int64_t t) {
    for (int one = 0; one < gate->lane_count; one++) {
        lane_t *lane = gate->lanes[one];
        while (lane->tail != lane->head) {
            segment_t *segment = &lane->segments[lane->tail % LANE_SEGMENTS];
            CUresult result = real.cuEventQuery(segment->end);
            if (result == CUDA_ERROR_NOT_READY)
                break;
            if (result == CUDA_SUCCESS)
                settle(lane, segment, t);
            else
                segment_write_off(lane, segment);
            lane->tail++;
        }
    }
}

int gate_is_drained(const gate_t *gate) {
    for (int one = 0; one < gate->lane_count; one++)
        if (gate->lanes[one]->is_open || gate->lanes[one]->head != gate->lanes[one]->tail)
            return 0;
    return 1;
}
