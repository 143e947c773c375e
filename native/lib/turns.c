/* Turns: where two tenants could each fill the card, one has it to itself for a while. So event time is its own time,
   and the card switches between them a hundred times a second and not five hundred.

   A turn has an end that everybody can see. Whoever holds it moves the end while its work is under way; of one that
   died or hangs, it is taken. */
#define _GNU_SOURCE
#include "tenancy.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAST_GRANT_NS (1 * MILLISECOND)
#define WORST_OVERTIME_NS (100 * MILLISECOND)
#define LONGEST_TURN_NS (300 * MILLISECOND)     /* no tenant has a longer one */
#define LOOK_NS (200 * MICROSECOND)

static uint64_t place_of(const tenancy_t *tenancy) {
    return (uint64_t)(tenancy->own - tenancy->file->tenants) + 1;
}

static uint64_t packed(const tenancy_t *tenancy, int64_t until) {
    return (uint64_t)(until / MICROSECOND) << 8 | place_of(tenancy);
}

static uint64_t owner_in(uint64_t turn) {
    return turn & 0xff;
}

static int64_t end_in(uint64_t turn) {
    return (int64_t)(turn >> 8) * MICROSECOND;
}

int turn_is_of(const card_file_t *file, const card_tenant_t *tenant) {
    return owner_in(atomic_load(&file->turn)) == (uint64_t)(tenant - file->tenants) + 1;
}

int turn_is_own(const tenancy_t *tenancy) {
    return turn_is_of(tenancy->file, tenancy->own);
}

int64_t turn_left_ns(const tenancy_t *tenancy, int64_t t) {
    uint64_t turn = atomic_load(&tenancy->file->turn);
    return owner_in(turn) ? end_in(turn) - t : 0;
}

/* Whoever has waited longest goes first, if it comes: its threads may wake up late. */
static int is_first(const tenancy_t *tenancy, int64_t t) {
    uint64_t own = atomic_load(&tenancy->own->turn_ended_ns);
    uint32_t used = tenant_count(tenancy->file);
    for (uint32_t place = 0; place < used; place++) {
        const card_tenant_t *other = &tenancy->file->tenants[place];
        if (other != tenancy->own && atomic_load(&other->turn_ended_ns) < own && tenant_waits(tenancy->file, other, t))
            return 0;
    }
    return 1;
}

/* Since when nobody has the turn and there is time to use. An end that is far from now is none. */
static int64_t free_since(const tenancy_t *tenancy, uint64_t turn, int64_t t) {
    int64_t since = (int64_t)atomic_load(&tenancy->own->refilled_ns);
    if (owner_in(turn) && end_in(turn) > since)
        since = end_in(turn);
    FOR_TENANTS(tenancy->file, tenant) {
        int64_t ended = (int64_t)atomic_load(&tenant->turn_ended_ns);
        since = ended > since && ended < t + FUTURE_NS ? ended : since;
    }
    return since;
}

void turn_renew(tenancy_t *tenancy, int64_t t) {
    int64_t budget = atomic_load(&tenancy->own->budget_ns), grant = budget > LEAST_GRANT_NS ? budget : LEAST_GRANT_NS;
    atomic_store(&tenancy->file->turn_began_ns, (uint64_t)t);
    atomic_store(&tenancy->file->turn_grant_ns, (uint64_t)grant);
    turn_keep(tenancy, t + grant + grant / 8 + 2 * MILLISECOND);
}

int turn_take(tenancy_t *tenancy, int64_t t) {
    uint64_t turn = atomic_load(&tenancy->file->turn);
    if (owner_in(turn) == place_of(tenancy))
        return 1;
    int is_taken = owner_in(turn) && end_in(turn) > t && end_in(turn) < t + LONGEST_TURN_NS;
    int is_polite = !is_taken && t - free_since(tenancy, turn, t) < POLITENESS_NS && !is_first(tenancy, t);
    if (is_taken || is_polite ||
        !atomic_compare_exchange_strong(&tenancy->file->turn, &turn, packed(tenancy, t + 2 * MILLISECOND)))
        return 0;
    atomic_store(&tenancy->file->is_ending, 0);
    turn_renew(tenancy, t);
    return 1;
}

int turn_is_used_up(const tenancy_t *tenancy, int64_t t, int64_t in_flight_ns) {
    int64_t began = (int64_t)atomic_load(&tenancy->file->turn_began_ns);
    int64_t grant = (int64_t)atomic_load(&tenancy->file->turn_grant_ns);
    return t - began + in_flight_ns > grant + grant / 16;
}

/* At most so long over what was granted, in case that the work never ends. */
void turn_keep(tenancy_t *tenancy, int64_t until) {
    int64_t latest = (int64_t)atomic_load(&tenancy->file->turn_began_ns) +
                     (int64_t)atomic_load(&tenancy->file->turn_grant_ns) + WORST_OVERTIME_NS;
    uint64_t turn = atomic_load(&tenancy->file->turn), wanted = packed(tenancy, until < latest ? until : latest);
    while (owner_in(turn) == place_of(tenancy) && end_in(turn) < end_in(wanted) &&
           !atomic_compare_exchange_weak(&tenancy->file->turn, &turn, wanted)) {}
}

static void ring(tenancy_t *tenancy) {
    atomic_fetch_add(&tenancy->file->bell, 1);
    syscall(SYS_futex, &tenancy->file->bell, FUTEX_WAKE, 1 << 20, NULL, NULL, 0);
}

void turn_end(tenancy_t *tenancy, int64_t t) {
    uint64_t turn = atomic_load(&tenancy->file->turn);
    while (owner_in(turn) == place_of(tenancy)) {
        if (!atomic_compare_exchange_weak(&tenancy->file->turn, &turn, 0))
            continue;
        atomic_store(&tenancy->own->turn_ended_ns, (uint64_t)t);
        atomic_store(&tenancy->file->is_ending, 0);
        ring(tenancy);
        return;
    }
}

void turn_announce_end(tenancy_t *tenancy) {
    if (!atomic_exchange(&tenancy->file->is_ending, 1))
        ring(tenancy);
}

void turn_await(tenancy_t *tenancy, uint32_t heard, int64_t ns) {
    struct timespec patience = {.tv_nsec = ns};
    syscall(SYS_futex, &tenancy->file->bell, FUTEX_WAIT, heard, &patience, NULL, 0);
    int64_t until = now_ns() + LOOK_NS;
    while (atomic_load(&tenancy->file->is_ending) && owner_in(atomic_load(&tenancy->file->turn)) && now_ns() < until) {}
}
