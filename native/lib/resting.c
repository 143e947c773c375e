/* Rests: a tenant that is far below its share needs no measuring all the time, and one without a share none at all,
   unless there is one of lower priority, which must know when the card is free of it, or it is of low priority itself
   and must not get far ahead of the card.

   While a gate rests launches go by it. What they take is held to be what it was before. It ends with a kernel that is
   new, or with more launches than before; and every few milliseconds it is looked at whether it can go on: a card that
   lags behind, a program that waits for it, a new limit, one that goes first or waits for its share all end it. What
   went by while the card fell behind is paid afterwards. */
#include "compute.h"

#define REST_MS 150                             /* where the share is strict */
#define LONG_REST_MS 450
#define LOOK_MS 8
#define WORST_LAG_NS (1.0 * (double)MILLISECOND)
#define WORST_WAIT_NS (2 * MILLISECOND)         /* of a thread for the card, since it last looked */
#define WORST_WAIT_PERCENT 25
#define MARGIN 1.25
#define LONGEST_ACCOUNT_NS (100 * MILLISECOND)

/* How far the card is behind, by an event of the last look; that is over where it is not done yet. */
static int lags_behind(gate_t *gate) {
    timeline_t *timeline = gate->scout_timeline;
    float since_ms;
    if (gate->scout_ns == 0 || timeline == NULL || timeline->newest == NULL)
        return 0;
    CUresult result = real.cuEventQuery(gate->scout);
    if (result == CUDA_ERROR_NOT_READY)
        return 1;
    if (result != CUDA_SUCCESS ||
        real.cuEventElapsedTime(&since_ms, timeline->newest, gate->scout) != CUDA_SUCCESS)
        return 0;
    return timeline->newest_ns + (double)since_ms * 1e6 - timeline->lag_ns - (double)gate->scout_ns > WORST_LAG_NS;
}

/* What has gone to the stream since the scout is paid as a segment that began with it. */
static void call_to_account(lane_t *lane, int64_t t) {
    gate_t *gate = lane->gate;
    segment_t *segment = &lane->segments[lane->head % LANE_SEGMENTS];
    if (gate->scout_ns == 0 || gate->scout_timeline != lane->timeline || lane->is_open ||
        t - gate->scout_ns > LONGEST_ACCOUNT_NS)
        return;
    segment_open(lane, t, 0);
    CUevent begin = segment->begin;
    segment->begin = gate->scout;
    segment->opened_ns = segment->opened_by_ns = gate->scout_ns;
    segment->is_first = 1;      /* nothing is known of it, so all of it counts */
    gate->scout = begin;
    gate->scout_ns = 0;
    segment_close(lane, t);
}

static void send_scout(lane_t *lane, int64_t t) {
    gate_t *gate = lane->gate;
    if (gate->scout_timeline != lane->timeline) {
        gate_recall_scout(gate);
        if (real.cuEventCreate(&gate->scout, 0) != CUDA_SUCCESS)
            return;
        gate->scout_timeline = lane->timeline;
    }
    gate->scout_ns = real.cuEventRecord(gate->scout, lane->stream) == CUDA_SUCCESS ? t : 0;
}

void gate_recall_scout(gate_t *gate) {
    if (gate->scout_timeline)
        real.cuEventDestroy_v2(gate->scout);
    gate->scout_timeline = NULL;
    gate->scout_ns = 0;
}

/* Whether the tenant may go unmeasured: nothing that it does could be more than its share, or nobody would mind. */
static int can_rest(gate_t *gate, int64_t t) {
    tenancy_t *tenancy = &gate->tenancy;
    if (tenant_must_yield(tenancy, t))
        return 0;
    if (gate->share == 0)
        return atomic_load(&tenancy->own->priority) == 0 && !tenant_goes_first(tenancy, t);
    if (gate->demand == 0 || gate->demand > HEAVY || atomic_load(&tenancy->own->budget_ns) < 0)
        return 0;
    int is_modest = tenant_demand(tenancy, t) * MARGIN * 100 < gate->share;
    return gate->is_generous ? is_modest || !tenant_has_rivals(tenancy, t)
                             : is_modest && !tenant_is_disturbed(tenancy, t);
}

/* What may go by from look to look: about twice of what it was. */
static int64_t allowance(const gate_t *gate) {
    return (int64_t)((2 * gate->demand + 0.05) * 1.5 * LOOK_MS * (double)MILLISECOND);
}

void gate_rest(gate_t *gate, int64_t t) {
    if (!can_rest(gate, t))
        return;
    uint64_t now = coarse_ms();
    gate->rest_began_ns = t;
    gate->rest_left_ns = allowance(gate);
    gate->scout_ns = 0;
    atomic_store(&gate->rest_looked_ms, now);
    atomic_store(&gate->rest_until_ms, now + (gate->is_generous ? LONG_REST_MS : REST_MS));
}

void gate_begin_anew(gate_t *gate, int64_t t) {
    atomic_store(&gate->rest_until_ms, 0);
    gate->scout_ns = 0;
    gate->demand = gate->window_cost = gate->window_host = gate->window_blocked = 0;
    gate->window_ns = t;
    demand_skip_to(t);
}

static void end_rest(gate_t *gate, int64_t t) {
    atomic_store(&gate->rest_until_ms, 0);
    uint64_t used = (uint64_t)(gate->demand * (double)(t - gate->rest_began_ns));
    if (gate->share)
        atomic_fetch_add(&region_figures(gate->card)->gpu_ns, used);
    gate->window_cost = gate->window_host = gate->window_blocked = 0;
    gate->window_ns = t;
}

/* Returns whether the rest goes on. */
static int look(lane_t *lane, uint64_t now, int is_known) {
    gate_t *gate = lane->gate;
    int64_t t = now_ns(), since, waited = demand_waited(t, &since);
    int is_strict = gate->share && !gate->is_generous;
    int waits = is_strict && waited > WORST_WAIT_NS && waited * 100 > (t - since) * WORST_WAIT_PERCENT;
    capture_guard_t guard = captures_guard();
    gate_refresh(gate, t);
    tenant_in_flight(&gate->tenancy, 0, t);     /* for its other processes: this one is there, and nothing waits */
    int is_late = is_strict && (gate->rest_left_ns < 0 || lags_behind(gate));
    int goes_on = is_known && !is_late && !waits && can_rest(gate, t) && (gate->share == 0 || now < gate->rest_until_ms);
    int has_room = is_strict && lane_has_room(lane, 0);
    if (is_late && has_room)
        call_to_account(lane, t);
    else if (waits && gate->scout_ns)   /* it did not at the last look, so its kernels have become longer */
        budget_pay(&gate->tenancy, waited, gate->is_generous);
    if (!goes_on)
        end_rest(gate, t);
    else if (has_room)
        send_scout(lane, t);
    gate->rest_left_ns = allowance(gate);
    atomic_store(&gate->rest_looked_ms, now);
    captures_unguard(guard);
    return goes_on;
}

int gate_goes_on_resting(lane_t *lane, const cost_t *cost) {
    gate_t *gate = lane->gate;
    uint64_t now = coarse_ms();
    gate->rest_left_ns -= (int64_t)cost->ns;
    int is_known = cost->seen || gate->share == 0;
    if (is_known && now - gate->rest_looked_ms < LOOK_MS && (gate->rest_left_ns > 0 || gate->is_generous))
        return 1;
    return look(lane, now, is_known);
}

int gate_rests_for_good(const gate_t *gate) {
    return gate->share == 0 && gate->rest_until_ms && coarse_ms() - gate->rest_looked_ms < LOOK_MS;
}
