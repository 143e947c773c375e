/* How a launch waits for the share: asleep until the next frame or turn, and for the end of its own work with open eyes
   in the last moments of a turn. The gate's mutex is free meanwhile. */
#define _GNU_SOURCE
#include "compute.h"

#define LEAD_NS (100 * MICROSECOND)             /* before its turn ends the next tenant is woken */
#define LOOKS_BEFORE_NAP 4

static void nap(gate_t *gate, int64_t ns) {
    struct timespec pause = {.tv_nsec = within(ns, SHORTEST_NAP_NS, LONGEST_NAP_NS)};
    pthread_mutex_unlock(&gate->mutex);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&gate->mutex);
}

static void listen(gate_t *gate, uint32_t heard, int64_t ns) {
    pthread_mutex_unlock(&gate->mutex);
    turn_await(&gate->tenancy, heard, within(ns, SHORTEST_NAP_NS, LONGEST_NAP_NS));
    pthread_mutex_lock(&gate->mutex);
}

static int64_t drain_ns(const gate_t *gate, int64_t t) {
    return within(gate->done_ns + gate->in_flight_ns - t, 2 * SHORTEST_NAP_NS, 1000 * MILLISECOND);
}

/* The turn is over when the work that is under way is done. The next tenant is woken a moment before. */
static void hand_over(gate_t *gate, int64_t t, int *looks) {
    tenancy_t *tenancy = &gate->tenancy;
    if (gate_is_drained(gate)) {
        if (tenant_in_flight(tenancy, 0, t) <= 0)
            turn_end(tenancy, t);
        else
            nap(gate, LEAD_NS);
        return;
    }
    int64_t left = drain_ns(gate, t) - LEAD_NS;
    turn_keep(tenancy, t + (left > 0 ? left : 0) + 3 * MILLISECOND);
    if (left > 0 || (*looks)++ >= LOOKS_BEFORE_NAP) {
        nap(gate, within(left, 3 * SHORTEST_NAP_NS, 300 * MICROSECOND));
        return;
    }
    turn_announce_end(tenancy);
    for (int64_t until = t + 2 * LEAD_NS; !gate_is_drained(gate) && t < until; t = now_ns())
        segments_collect(gate, t);
}

static void open_segment(lane_t *lane, const cost_t *cost, int64_t t) {
    gate_t *gate = lane->gate;
    int64_t room = atomic_load(&gate->tenancy.own->budget_ns) - gate->in_flight_ns;
    if (gate->share == 0 || gate->is_generous || room > SEGMENT_NS)
        room = SEGMENT_NS;
    if (cost->seen == 0)
        room = 0;
    int is_held = gate->wants_sample && cost->seen && cost->ns < SAMPLE_NS && sample_begin(lane, t);
    segment_open(lane, t, room);
    if (is_held)
        lane->until_ns = t + SAMPLE_NS;
}

int gate_wait(lane_t *lane, const cost_t *cost, int64_t t) {
    gate_t *gate = lane->gate;
    int64_t began = t, throttled = 0;
    int looks = 0;
    capture_guard_t guard = captures_guard();
    segment_close(lane, t);
    demand_weigh(gate, t);
    gate->waiting++;
    for (;; t = now_ns()) {
        uint32_t heard = atomic_load(&gate->tenancy.file->bell);
        if (t - gate->refreshed_ns > LIMITS_NS)
            gate_refresh(gate, t);
        segments_collect(gate, t);
        verdict_t verdict = gate_ask(gate, cost, t, t - began);
        if (verdict.answer == GO && t - began < PATIENCE_NS && !lane_has_room(lane, LEAST_LAUNCHES))
            verdict = (verdict_t){NAP, SHORTEST_NAP_NS};
        if (verdict.answer == GO)
            break;
        lanes_close_segments(gate, t);  /* what was launched on other streams must end where somebody sees it */
        if (verdict.answer == HAND_OVER)
            hand_over(gate, t, &looks);
        else if (verdict.answer == LISTEN)
            listen(gate, heard, verdict.ns);
        else
            nap(gate, verdict.ns);
        throttled += verdict.answer == NAP ? 0 : now_ns() - t;
    }
    segment_close(lane, t);             /* of another thread that has gone meanwhile, on the same stream */
    gate->waiting--;
    if (throttled)
        atomic_fetch_add(&region_figures(gate->card)->throttled_ns, (uint64_t)throttled);
    demand_skip_to(t);
    if (gate->share == 0)
        gate_rest(gate, t);
    int is_measured = gate->rest_until_ms == 0 && lane->timeline && lane_has_room(lane, LEAST_LAUNCHES);
    if (is_measured)            /* otherwise its context may have gone */
        open_segment(lane, cost, t);
    timekeeper_wake();
    captures_unguard(guard);
    return is_measured;
}
