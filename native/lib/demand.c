/* What the tenant pays, and how much of the card it would keep busy. */
#include "compute.h"

#define WINDOW_NS (50 * MILLISECOND)

/* Since when the calling thread was about its own things, and what it waited of that time for the card; and the same of
   a whole window. */
static __thread struct {
    int64_t marked_ns, blocked_ns;
    int64_t window_ns;
    double window_host, window_blocked;
} self;

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

/* How much of the card the process would keep busy, were it alone. Then all its waiting would be its own; beside others
   it waits for their work too, but no longer than the card works for it, and gets no less than an even part of the
   card. */
static double demand_in_window(const gate_t *gate, int64_t t) {
    double cost = gate->window_cost, waited = gate->window_blocked < cost ? gate->window_blocked : cost;
    double at_most = cost / (gate->window_host + waited + 1);
    double even = cost / (gate->window_host + gate->window_blocked + 1) * tenants_active(&gate->tenancy, t);
    return at_most < even ? at_most : even;
}

void demand_skip_to(int64_t t) {
    self.blocked_ns = 0;
    self.marked_ns = t;
}

/* Threads do their own things at the same time, so that of them counts which takes the longest. */
static void weigh_own_time(gate_t *gate, int64_t t) {
    if (self.window_ns != gate->window_ns) {
        self.window_ns = gate->window_ns;
        self.window_host = self.window_blocked = 0;
    }
    if (self.marked_ns && t - self.marked_ns < WINDOW_NS) {
        int64_t from = self.marked_ns > gate->window_ns ? self.marked_ns : gate->window_ns;
        int64_t blocked = self.blocked_ns < t - from ? self.blocked_ns : t - from;
        self.window_host += (double)(t - from - blocked);
        self.window_blocked += (double)blocked;
    }
    if (self.window_host + self.window_blocked > gate->window_host + gate->window_blocked) {
        gate->window_host = self.window_host;
        gate->window_blocked = self.window_blocked;
    }
    demand_skip_to(t);
}

void demand_weigh(gate_t *gate, int64_t t) {
    weigh_own_time(gate, t);
    if (t - gate->window_ns < WINDOW_NS)
        return;
    if (gate->window_cost > 0) {
        double demand = demand_in_window(gate, t);
        gate->demand = t - gate->window_ns < 2 * WINDOW_NS ? (gate->demand + demand) / 2 : demand;
        tenant_say_demand(&gate->tenancy, gate->demand);
    }
    if (gate->window_cost > 0 && gate->demand > HEAVY)
        atomic_store(&gate->tenancy.own->heavy_ns, (uint64_t)t);
    gate->window_ns = t;
    gate->window_cost = gate->window_host = gate->window_blocked = 0;
    gate_rest(gate, t);
}

int64_t demand_waited(int64_t t, int64_t *since) {
    int64_t waited = self.blocked_ns;
    *since = self.marked_ns;
    demand_skip_to(t);
    return waited;
}
