/* Rests: a tenant that is far below its share needs no measuring all the time, and one without a share none at all.

   While a gate rests launches go by it. What they take is held to be what it was before. Every few milliseconds it is
   looked at whether that can still be so: a card that lags behind, a program that waits for it, a new limit, one that
   goes first or waits for its share all end the rest. */
#include "compute.h"

#define REST_MS 150
#define LOOK_MS 8
#define WORST_LAG_NS (1.0 * (double)MILLISECOND)
#define WORST_WAIT_NS (2 * MILLISECOND)         /* of a thread for the card, from look to look */
#define MARGIN 1.25

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
        return 1;
    if (gate->demand == 0 || gate->demand > HEAVY || atomic_load(&tenancy->own->budget_ns) < 0)
        return 0;
    int is_modest = gate->demand * MARGIN * 100 < gate->share;
    return gate->is_generous ? is_modest || !tenant_has_rivals(tenancy, t)
                             : is_modest && !tenant_is_disturbed(tenancy, t);
}

void gate_rest(gate_t *gate, int64_t t) {
    if (!can_rest(gate, t))
        return;
    uint64_t now = coarse_ms();
    gate->rest_began_ns = t;
    gate->scout_ns = 0;
    atomic_store(&gate->rest_looked_ms, now);
    atomic_store(&gate->rest_until_ms, now + REST_MS);
}

static void end_rest(gate_t *gate, int64_t t) {
    atomic_store(&gate->rest_until_ms, 0);
    uint64_t used = (uint64_t)(gate->demand * (double)(t - gate->rest_began_ns));
    if (gate->share)
        atomic_fetch_add(&region_figures(gate->card)->gpu_ns, used);
    gate->window_cost = gate->window_host = gate->window_blocked = 0;
    gate->window_ns = t;
}

static int look(lane_t *lane, uint64_t now) {
    gate_t *gate = lane->gate;
    int64_t t = now_ns(), waited = demand_waited(t);
    capture_guard_t guard = captures_guard();
    pthread_mutex_lock(&gate->mutex);
    gate_refresh(gate, t);
    int is_over = gate->rest_until_ms == 0 || !can_rest(gate, t);
    if (!is_over && gate->share && !gate->is_generous)
        is_over = waited > WORST_WAIT_NS || lags_behind(gate);
    if (gate->share ? is_over || now >= gate->rest_until_ms : is_over)
        end_rest(gate, t);
    else
        send_scout(lane, t);
    atomic_store(&gate->rest_looked_ms, now);
    pthread_mutex_unlock(&gate->mutex);
    captures_unguard(guard);
    return gate->rest_until_ms != 0;
}

int gate_goes_on_resting(lane_t *lane) {
    uint64_t now = coarse_ms();
    if (now - atomic_load_explicit(&lane->gate->rest_looked_ms, memory_order_relaxed) < LOOK_MS)
        return 1;
    return look(lane, now);
}
