/* Whether a launch may go now.

   It goes while the container has budget, and where turns are taken, while it is the container's turn. No answer holds
   for ever: debts are paid off with time, and work under way holds a launch back for a bounded time only, because it
   may be work that waits for this very launch. What collectives launch always goes. */
#include "compute.h"

#define DEPTH_NS (8 * MILLISECOND)              /* of work under way, beyond which a process gets no further ahead */

static int64_t until_frame(const gate_t *gate, int64_t t) {
    int64_t frame = budget_frame_ns(&gate->tenancy, t);
    return frame - t % frame;
}

static int has_budget(gate_t *gate, const cost_t *cost, int64_t t, int64_t in_flight, int64_t waited) {
    const tenancy_t *tenancy = &gate->tenancy;
    int64_t budget = atomic_load(&tenancy->own->budget_ns);
    int64_t least = budget_least_ns(tenancy->file, tenancy->own, (int64_t)cost->ns, t);
    return budget - in_flight > least || (waited > PATIENCE_NS && budget > least);
}

/* The tenant's turn, if turns are taken: LISTEN until it comes, HAND_OVER when it is over. */
static verdict_t ask_for_turn(gate_t *gate, int64_t t, int64_t in_flight, int may_spend, int has_rivals) {
    tenancy_t *tenancy = &gate->tenancy;
    if (!turn_is_own(tenancy) && (!may_spend || !turn_take(tenancy, t))) {
        atomic_store(&tenancy->own->waiting_ns, (uint64_t)t);
        int64_t left = turn_left_ns(tenancy, t);
        return (verdict_t){LISTEN, left > 0 ? left : may_spend ? POLITENESS_NS : until_frame(gate, t)};
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

/* How far ahead of the card the process may be. */
static verdict_t ask_for_depth(const gate_t *gate, int64_t waited) {
    if (gate->in_flight_ns > DEPTH_NS && waited < PATIENCE_NS)
        return (verdict_t){NAP, gate->in_flight_ns - DEPTH_NS + 2 * SHORTEST_NAP_NS};
    return (verdict_t){GO, 0};
}

verdict_t gate_ask(gate_t *gate, const cost_t *cost, int64_t t, int64_t waited) {
    tenancy_t *tenancy = &gate->tenancy;
    if (tenant_must_yield(tenancy, t) && !cost->is_collective)
        return (verdict_t){YIELD, LONGEST_NAP_NS};
    atomic_store(&tenancy->own->active_ns, (uint64_t)t);
    note_kernel(tenancy->own, (uint64_t)cost->ns);
    if (cost->is_collective)
        return (verdict_t){GO, 0};
    if (gate->share == 0)       /* what one of low priority has launched, others would have to wait for */
        return atomic_load(&tenancy->own->priority) ? ask_for_depth(gate, waited) : (verdict_t){GO, 0};
    budgets_refill(tenancy, t);
    int64_t in_flight = tenant_in_flight(tenancy, gate->in_flight_ns, t);
    int has_rivals = tenant_has_rivals(tenancy, t);
    int may_spend = has_budget(gate, cost, t, in_flight, waited) || (gate->is_generous && !has_rivals);
    if (turns_are_needed(tenancy, t)) {
        int64_t counted = waited > PATIENCE_NS ? 0 : in_flight;
        verdict_t verdict = ask_for_turn(gate, t, counted, may_spend, has_rivals);
        if (verdict.answer != GO)
            return verdict;
    } else {
        turn_end(tenancy, t);
        if (!may_spend) {
            atomic_store(&tenancy->own->waiting_ns, (uint64_t)t);
            return (verdict_t){LISTEN, until_frame(gate, t)};
        }
    }
    verdict_t verdict = ask_for_depth(gate, waited);
    if (verdict.answer != GO)
        return verdict;
    if (cost->is_awaited && waited < PATIENCE_NS)
        return (verdict_t){NAP, SHORTEST_NAP_NS};
    atomic_store(&tenancy->own->waiting_ns, 0);
    return (verdict_t){GO, 0};
}
