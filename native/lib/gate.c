/* The gate before a card: who must ask, and what is asked before a launch and after it.

   A launch on a card without a share or a priority goes by, unless there is somebody whom it goes before. One within an
   open segment goes by with a look at the clock; the others wait for the share (waiting.c). */
#define _GNU_SOURCE
#include "compute.h"

#include <stdlib.h>

static _Atomic(gate_t *) gates[MOST_CARDS];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t generation = 1;         /* of lanes, so that threads do not use one that is gone */

/* The lane that the thread has last used. */
static __thread struct {
    CUstream stream;
    CUcontext context;
    lane_t *lane;
    uint64_t generation;
    int is_to_close;            /* the segment that it launches in, right after */
} self;

/* ---- gates ---------------------------------------------------------------------------------------------------- */

gate_t *gate_at(int card) {
    return atomic_load_explicit(&gates[card], memory_order_acquire);
}

static gate_t *make_gate(int card) {
    pthread_mutex_lock(&making);
    gate_t *gate = gate_at(card);
    if (gate == NULL && (gate = calloc(1, sizeof *gate)) != NULL) {
        pthread_mutex_init(&gate->mutex, NULL);
        gate->card = card;
        tenancy_join(&gate->tenancy, card);
        if (gate->tenancy.file)
            atomic_store_explicit(&gates[card], gate, memory_order_release);
        else
            free(gate), gate = NULL;
    }
    pthread_mutex_unlock(&making);
    return gate;
}

gate_t *gate_of_card(int card) {
    gate_t *gate = card == NO_CARD ? NULL : gate_at(card);
    return gate || card == NO_CARD ? gate : make_gate(card);
}

void lanes_forget(void) {
    atomic_fetch_add(&generation, 1);
}

/* A child has no context and no launches of its own yet. What its parent had is left where it is. */
void forget_gates(void) {
    pthread_mutex_init(&making, NULL);
    for (int card = 0; card < MOST_CARDS; card++) {
        gate_t *gate = gate_at(card);
        if (gate)
            tenancy_leave_in_child(&gate->tenancy);
        atomic_store(&gates[card], NULL);
    }
    lanes_forget();
}

/* What the tile says now. Returns whether launches on the card must ask. */
int gate_refresh(gate_t *gate, int64_t t) {
    card_tenant_t *own = gate->tenancy.own;
    compute_limit_t limit = compute_limit_of(gate->card);
    gate->share = mps_is_used ? 0 : limit.share_percent;
    gate->is_generous = limit.is_generous;
    gate->refreshed_ns = t;
    atomic_store(&own->share_percent, (uint32_t)gate->share);
    atomic_store(&own->priority, (uint32_t)limit.priority);
    atomic_store(&own->active_ns, (uint64_t)t);
    atomic_store(&region_figures(gate->card)->share_percent, (uint64_t)limit.share_percent);
    atomic_store(&region_figures(gate->card)->launched_ms, (uint64_t)(t / MILLISECOND));
    atomic_store(&gate->is_asked, gate->share != 0 || limit.priority != 0 || tenant_goes_first(&gate->tenancy, t));
    return atomic_load(&gate->is_asked);
}

/* Of a card without a limit, in a process that has one on another. */
static int must_ask(gate_t *gate) {
    if (gate->is_asked)
        return 1;
    if ((int64_t)coarse_ms() * MILLISECOND - gate->refreshed_ns > LIMITS_NS)
        gate_refresh(gate, now_ns());
    if (gate->is_asked) {
        pthread_mutex_lock(&gate->mutex);
        gate_begin_anew(gate, now_ns());
        pthread_mutex_unlock(&gate->mutex);
    }
    return gate->is_asked;
}

_Atomic int gate_is_shut;
_Atomic uint64_t gate_looked_ms;

static int is_limited(int card) {
    compute_limit_t limit = compute_limit_of(card);
    return (limit.share_percent && !mps_is_used) || limit.priority;
}

/* Once in a while, also where nothing is limited: limits change, and other tenants want to know who is there. For all
   cards, because threads that launch on another one may come too rarely to look themselves. */
int gate_look_again(void) {
    atomic_store_explicit(&gate_looked_ms, coarse_ms(), memory_order_relaxed);
    gate_t *gate = gate_of_card(current_card());
    if ((gate && gate_refresh(gate, now_ns())) || any_card(is_limited))
        atomic_store(&gate_is_shut, 1);
    return atomic_load(&gate_is_shut);
}

/* ---- a launch ------------------------------------------------------------------------------------------------- */

static lane_t *find_lane(CUstream stream) {
    CUcontext context = NULL;
    uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);
    if (self.lane && self.generation == now && self.stream == stream && stream > PER_THREAD_STREAM)
        return self.lane;
    if (real.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == NULL)
        return NULL;
    if (self.lane && self.generation == now && self.stream == stream && self.context == context)
        return self.lane;
    gate_t *gate = gate_of_card(current_card());
    if (gate == NULL)
        return NULL;
    pthread_mutex_lock(&gate->mutex);
    self.lane = lane_of(gate, stream, context);
    pthread_mutex_unlock(&gate->mutex);
    self.stream = stream;
    self.context = context;
    self.generation = now;
    return self.lane;
}

lane_t *gate_enter(CUstream stream, launched_t kind, const void *what, uint64_t size) {
    if (captures_open && stream_is_capturing(stream))   /* what it takes is seen when the graph is launched */
        return NULL;
    lane_t *lane = find_lane(stream);
    if (lane == NULL || !must_ask(lane->gate))
        return NULL;
    gate_t *gate = lane->gate;
    if (gate_rests_for_good(gate))
        return NULL;
    pthread_mutex_lock(&gate->mutex);
    if (lane->timeline == NULL || lane->stream != stream) {     /* it was dropped meanwhile */
        pthread_mutex_unlock(&gate->mutex);
        return NULL;
    }
    cost_t *cost = cost_of(gate, kind, what, size);
    if (gate->rest_until_ms && gate_goes_on_resting(lane, cost)) {
        lane_pass(lane);
        pthread_mutex_unlock(&gate->mutex);
        return NULL;
    }
    int64_t t = now_ns();
    const segment_t *segment = &lane->segments[lane->head % LANE_SEGMENTS];
    int is_within = lane->is_open && t < lane->until_ns && cost->seen && lane->left_ns >= (int64_t)cost->ns &&
                    segment->launches < segment->room;
    int is_measured = is_within || gate_wait(lane, cost, t);
    if (is_measured) {
        segment_add(lane, cost, is_within ? t : now_ns());
        self.is_to_close = cost->seen == 0 || lane->segments[lane->head % LANE_SEGMENTS].expected_ns >= SEGMENT_NS;
        lane->launching++;
    } else {
        lane_pass(lane);
        if (!gate->rest_until_ms)
            gate_pay(gate, (int64_t)cost->ns);
    }
    pthread_mutex_unlock(&gate->mutex);
    return is_measured ? lane : NULL;
}

/* Unless another thread is just launching in it. */
static void end_segment(lane_t *lane) {
    capture_guard_t guard = captures_guard();
    pthread_mutex_lock(&lane->gate->mutex);
    if (!lane->launching)
        segment_close(lane, now_ns());
    pthread_mutex_unlock(&lane->gate->mutex);
    captures_unguard(guard);
}

void gate_leave(lane_t *lane) {
    atomic_fetch_sub(&lane->launching, 1);
    if (self.is_to_close)
        end_segment(lane);
}

void gate_pause(void) {
    if (self.lane && self.generation == atomic_load(&generation) && !captures_open)
        end_segment(self.lane);
    sample_let_go();
}

void gate_set_apart(CUstream stream) {
    lane_t *lane = captures_open && stream_is_capturing(stream) ? NULL : find_lane(stream);
    if (lane)
        end_segment(lane);
}

void gates_close_segments(void) {
    capture_guard_t guard = captures_guard();
    for (int card = 0; card < MOST_CARDS; card++) {
        gate_t *gate = gate_at(card);
        if (gate == NULL)
            continue;
        pthread_mutex_lock(&gate->mutex);
        lanes_close_segments(gate, now_ns());
        pthread_mutex_unlock(&gate->mutex);
    }
    captures_unguard(guard);
}
