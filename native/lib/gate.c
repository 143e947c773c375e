/* The gate: whether a launch may go now, and how long it waits if not.

   It goes while the container has budget, and where turns are taken, while it is the container's turn. A wait ends by
   itself: debts are paid off with time, and work under way holds a launch back for a bounded time only, because it may be
   work that waits for this very launch. What collectives launch never waits. */
#define _GNU_SOURCE
#include "compute.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_NS (4 * MILLISECOND)              /* of work under way, beyond which a process gets no further ahead */
#define PATIENCE_NS (50 * MILLISECOND)          /* with work under way that does not end */
#define LEAD_NS (100 * MICROSECOND)             /* before its turn ends the next tenant is woken */
#define LONGEST_NAP_NS (2 * MILLISECOND)
#define SHORTEST_NAP_NS (10 * MICROSECOND)
#define WINDOW_NS (50 * MILLISECOND)
#define HEAVY 0.65
#define LOOKS_BEFORE_NAP 4
#define LIMITS_NS (10 * MILLISECOND)

static _Atomic(gate_t *) gates[MOST_CARDS];
static _Atomic uint64_t generation = 1;         /* of lanes, so that threads do not use one that is gone */

static __thread struct {
    CUstream stream;
    CUcontext context;
    lane_t *lane;
    uint64_t generation;
    int64_t marked_ns, blocked_ns;      /* since when the thread was about its own things, and what it waited of it */
} self;

/* ---- gates ---------------------------------------------------------------------------------------------------- */

gate_t *gate_at(int card) {
    return atomic_load_explicit(&gates[card], memory_order_acquire);
}

static gate_t *make_gate(int card) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
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
    pthread_mutex_unlock(&mutex);
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
    for (int card = 0; card < MOST_CARDS; card++) {
        gate_t *gate = gate_at(card);
        if (gate)
            tenancy_leave_in_child(&gate->tenancy);
        atomic_store(&gates[card], NULL);
    }
    lanes_forget();
}

/* What the tile says now. Returns whether launches on the card must ask. */
static int refresh(gate_t *gate, int64_t t) {
    card_tenant_t *own = gate->tenancy.own;
    compute_limit_t limit = compute_limit_of(gate->card);
    gate->share = limit.share_percent;
    gate->is_generous = limit.is_generous;
    gate->refreshed_ns = t;
    atomic_store(&own->share_percent, (uint32_t)limit.share_percent);
    atomic_store(&own->priority, (uint32_t)limit.priority);
    atomic_store(&own->active_ns, (uint64_t)t);
    atomic_store(&region_figures(gate->card)->share_percent, (uint64_t)limit.share_percent);
    atomic_store(&region_figures(gate->card)->launched_ms, (uint64_t)(t / MILLISECOND));
    atomic_store(&gate->is_asked, limit.share_percent != 0 || limit.priority != 0);
    return atomic_load(&gate->is_asked);
}

/* Of a card without a limit, in a process that has one on another. */
static int must_ask(gate_t *gate) {
    int64_t t = (int64_t)coarse_ms() * MILLISECOND;
    if (!gate->is_asked && t - gate->refreshed_ns > LIMITS_NS)
        refresh(gate, now_ns());
    return gate->is_asked;
}

_Atomic int gate_is_shut;
_Atomic uint64_t gate_looked_ms;

/* Once in a while, also where nothing is limited: limits change, and other tenants want to know who is there. */
int gate_look_again(void) {
    atomic_store_explicit(&gate_looked_ms, coarse_ms(), memory_order_relaxed);
    gate_t *gate = gate_of_card(current_card());
    if (gate && refresh(gate, now_ns()))
        atomic_store(&gate_is_shut, 1);
    return atomic_load(&gate_is_shut);
}

/* ---- accounts ------------------------------------------------------------------------------------------------- */

void gate_pay(gate_t *gate, int64_t ns) {
    budgets_refill(&gate->tenancy, now_ns());
    if (gate->share)
        budget_pay(&gate->tenancy, ns, gate->is_generous);
    gate->window_cost += (double)ns;
    atomic_fetch_add(&region_figures(gate->card)->gpu_ns, (uint64_t)ns);
}

void gate_was_blocked(int64_t ns) {
    self.blocked_ns += ns;
}

/* How much of the card the tenant would keep busy, were it alone: a process that waits for the card waits no longer than
   the card works for it, but for the work of others. */
static void weigh(gate_t *gate, int64_t t) {
    if (self.marked_ns && t - self.marked_ns < WINDOW_NS) {
        int64_t own = t - self.marked_ns - self.blocked_ns;
        gate->window_host += own > 0 ? (double)own : 0;
        gate->window_blocked += (double)self.blocked_ns;
    }
    self.blocked_ns = 0;
    self.marked_ns = t;
    if (t - gate->window_ns < WINDOW_NS)
        return;
    double waited = gate->window_blocked < gate->window_cost ? gate->window_blocked : gate->window_cost;
    double alone = gate->window_host + waited;
    if (gate->window_cost > 0 && alone > 0) {
        double demand = gate->window_cost / alone;
        gate->demand = t - gate->window_ns < 2 * WINDOW_NS ? (gate->demand + demand) / 2 : demand;
    }
    if (gate->window_cost > 0 && gate->demand > HEAVY)
        atomic_store(&gate->tenancy.own->heavy_ns, (uint64_t)t);
    gate->window_ns = t;
    gate->window_cost = gate->window_host = gate->window_blocked = 0;
}

/* ---- may it go? ----------------------------------------------------------------------------------------------- */

typedef enum { GO, NAP, LISTEN, HAND_OVER } answer_t;
typedef struct {
    answer_t answer;
    int64_t ns;                 /* how long to wait before asking again */
} verdict_t;

static int64_t until_frame(const gate_t *gate, int64_t t) {
    int64_t frame = budget_frame_ns(&gate->tenancy, t);
    return frame - t % frame;
}

static int has_budget(gate_t *gate, const cost_t *cost, int64_t t, int64_t in_flight, int64_t waited) {
    int64_t quarter = budget_quota_ns(&gate->tenancy, t) / 4, half = (int64_t)(cost->ns / 2);
    int64_t budget = atomic_load(&gate->tenancy.own->budget_ns), least = half < quarter ? half : quarter;
    return budget - in_flight > least || (waited > PATIENCE_NS && budget > least);
}

/* The tenant's turn, if turns are taken: LISTEN until it comes, HAND_OVER when it is over. */
static verdict_t ask_for_turn(gate_t *gate, int64_t t, int64_t in_flight, int may_spend, int has_rivals) {
    tenancy_t *tenancy = &gate->tenancy;
    if (!turn_is_own(tenancy) && (!may_spend || !turn_take(tenancy, t))) {
        atomic_store(&tenancy->own->waiting_ns, (uint64_t)t);
        int64_t left = turn_left_ns(tenancy, t);
        return (verdict_t){LISTEN, left > 0 ? left : until_frame(gate, t)};
    }
    if (!may_spend || (has_rivals && turn_is_used_up(tenancy, t, in_flight)))
        return (verdict_t){HAND_OVER, 0};
    turn_keep(tenancy, t + in_flight + 5 * MILLISECOND);
    if (!has_rivals && turn_is_used_up(tenancy, t, 0))
        turn_renew(tenancy, t);
    return (verdict_t){GO, 0};
}

/* The longest of late, because frames must have room for it. */
static void note_kernel(card_tenant_t *own, uint64_t ns) {
    uint64_t longest = atomic_load(&own->kernel_ns);
    atomic_store(&own->kernel_ns, ns > longest ? ns : longest - longest / 64);
}

static verdict_t ask(gate_t *gate, const cost_t *cost, int64_t t, int64_t waited) {
    tenancy_t *tenancy = &gate->tenancy;
    atomic_store(&tenancy->own->active_ns, (uint64_t)t);
    note_kernel(tenancy->own, (uint64_t)cost->ns);
    if (cost->is_collective)
        return (verdict_t){GO, 0};
    if (tenant_must_yield(tenancy, t))
        return (verdict_t){NAP, LONGEST_NAP_NS};
    if (gate->share == 0)
        return (verdict_t){GO, 0};
    budgets_refill(tenancy, t);
    int64_t in_flight = tenant_in_flight(tenancy, gate->in_flight_ns, t);
    int has_rivals = tenant_has_rivals(tenancy, t);
    int may_spend = has_budget(gate, cost, t, in_flight, waited) || (gate->is_generous && !has_rivals);
    if (turns_are_needed(tenancy, t)) {
        verdict_t verdict = ask_for_turn(gate, t, in_flight, may_spend, has_rivals);
        if (verdict.answer != GO)
            return verdict;
    } else {
        turn_end(tenancy, t);
        if (!may_spend) {
            atomic_store(&tenancy->own->waiting_ns, (uint64_t)t);
            return (verdict_t){LISTEN, until_frame(gate, t)};
        }
    }
    if (gate->in_flight_ns > DEPTH_NS && waited < PATIENCE_NS)
        return (verdict_t){NAP, gate->in_flight_ns - DEPTH_NS + 2 * SHORTEST_NAP_NS};
    atomic_store(&tenancy->own->waiting_ns, 0);
    return (verdict_t){GO, 0};
}

/* ---- waiting -------------------------------------------------------------------------------------------------- */

static int64_t within(int64_t ns, int64_t least, int64_t most) {
    return ns < least ? least : ns > most ? most : ns;
}

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

static void wait_for_share(lane_t *lane, const cost_t *cost, int64_t t) {
    gate_t *gate = lane->gate;
    int64_t began = t;
    int looks = 0;
    capture_guard_t guard = captures_guard();
    segment_close(lane, t);
    weigh(gate, t);
    gate->waiting++;
    for (;; t = now_ns()) {
        uint32_t heard = atomic_load(&gate->tenancy.file->bell);
        if (t - gate->refreshed_ns > LIMITS_NS)
            refresh(gate, t);
        segments_collect(gate, t);
        verdict_t verdict = ask(gate, cost, t, t - began);
        if (verdict.answer == GO)
            break;
        if (verdict.answer == HAND_OVER)
            hand_over(gate, t, &looks);
        else if (verdict.answer == LISTEN)
            listen(gate, heard, verdict.ns);
        else
            nap(gate, verdict.ns);
        if (lane->is_open)              /* another thread has gone meanwhile, on the same stream */
            segment_close(lane, now_ns());
    }
    gate->waiting--;
    if (t - began > SHORTEST_NAP_NS)
        atomic_fetch_add(&region_figures(gate->card)->throttled_ns, (uint64_t)(t - began));
    self.marked_ns = t;
    open_segment(lane, cost, t);
    timekeeper_wake();
    captures_unguard(guard);
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

lane_t *gate_enter(CUstream stream, const void *what, uint64_t size) {
    if (captures_open && stream_is_capturing(stream))   /* what it takes is seen when the graph is launched */
        return NULL;
    lane_t *lane = find_lane(stream);
    if (lane == NULL || !must_ask(lane->gate))
        return NULL;
    gate_t *gate = lane->gate;
    pthread_mutex_lock(&gate->mutex);
    int64_t t = now_ns();
    cost_t *cost = cost_of(gate, what, size);
    int is_within = lane->is_open && t < lane->until_ns && cost->seen && lane->left_ns >= (int64_t)cost->ns;
    if (!is_within)
        wait_for_share(lane, cost, t);
    segment_add(lane, cost, t);
    int is_to_close = cost->seen == 0 || lane->segments[lane->head % LANE_SEGMENTS].expected_ns >= SEGMENT_NS;
    pthread_mutex_unlock(&gate->mutex);
    return is_to_close ? lane : NULL;
}

void gate_leave(lane_t *lane) {
    capture_guard_t guard = captures_guard();
    pthread_mutex_lock(&lane->gate->mutex);
    segment_close(lane, now_ns());
    pthread_mutex_unlock(&lane->gate->mutex);
    captures_unguard(guard);
}

void gate_set_apart(CUstream stream) {
    lane_t *lane = captures_open && stream_is_capturing(stream) ? NULL : find_lane(stream);
    if (lane && lane->is_open)
        gate_leave(lane);
}

void gates_close_segments(void) {
    capture_guard_t guard = captures_guard();
    for (int card = 0; card < MOST_CARDS; card++) {
        gate_t *gate = gate_at(card);
        if (gate == NULL)
            continue;
        pthread_mutex_lock(&gate->mutex);
        for (int one = 0; one < gate->lane_count; one++)
            segment_close(gate->lanes[one], now_ns());
        pthread_mutex_unlock(&gate->mutex);
    }
    captures_unguard(guard);
}
