/* Who shares a card, what each may still use of its time, and whose turn it is: what all processes of all tenants agree
   on, by the card's file. Nothing here knows of launches. */

#ifndef TESSERA_TENANCY_H
#define TESSERA_TENANCY_H

#include "card_file.h"
#include "tessera.h"

#define MICROSECOND ((int64_t)1000)
#define MILLISECOND ((int64_t)1000000)
#define SHARING_NS (200 * MILLISECOND)          /* of tenants that share: it should not change with every pause */
#define FUTURE_NS (1000 * MILLISECOND)          /* beyond which a stamp is none */
#define POLITENESS_NS (300 * MICROSECOND)       /* of one that lets others take the turn before it */

static inline int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t within(int64_t ns, int64_t least, int64_t most) {
    return ns < least ? least : ns > most ? most : ns;
}

/* ---- tenants.c: who shares the card ---- */

typedef struct {
    shared_t shared;
    card_file_t *file;
    card_tenant_t *own;
    card_member_t *self;
} tenancy_t;

/* Join the card's file, or a private one where there is none. */
void tenancy_join(tenancy_t *tenancy, int card);
void tenancy_leave_in_child(tenancy_t *tenancy);

int stamp_is_recent(const _Atomic uint64_t *stamp, int64_t t, int64_t period);

/* Whether it has turns with others of its kind; whether there is another one of them. */
int tenant_takes_turns(const card_tenant_t *tenant, int64_t t);
int turns_are_needed_by(card_file_t *file, const card_tenant_t *tenant, int64_t t);

uint32_t tenant_count(const card_file_t *file);
#define FOR_TENANTS(file, one)                                                                                         \
    for (card_tenant_t *one = (file)->tenants, *end_ = one + tenant_count(file); one < end_; one++)

/* What all processes of the tenant have in flight, by what they last said; the same after this one says `own_ns`. */
int64_t tenant_under_way(const card_file_t *file, const card_tenant_t *tenant, int64_t t);
int64_t tenant_in_flight(tenancy_t *tenancy, int64_t own_ns, int64_t t);

/* How much of the card this process would keep busy; and all processes of the tenant together. */
void tenant_say_demand(tenancy_t *tenancy, double demand);
double tenant_demand(const tenancy_t *tenancy, int64_t t);

/* Whether others use the card at the same time, outside turns, so that elapsed time is not this tenant's alone. */
int tenant_is_disturbed(const tenancy_t *tenancy, int64_t t);

/* What it launched is under way, however long ago that was. */
void tenant_is_at_work(tenancy_t *tenancy, int64_t t);

/* How many use the card, this one included. */
int tenants_active(const tenancy_t *tenancy, int64_t t);

/* Whether it waits and has time to use; whether another one does. */
int tenant_waits(card_file_t *file, const card_tenant_t *tenant, int64_t t);
int tenant_has_rivals(const tenancy_t *tenancy, int64_t t);

/* Whether it would use its time and cannot yet, because it is or was another's turn. */
int tenant_is_kept_waiting(card_file_t *file, const card_tenant_t *tenant, int64_t t);

/* Whether one that goes before this one uses the card; whether there is one that this one goes before, and that must
   know how long its work is under way. */
int tenant_must_yield(const tenancy_t *tenancy, int64_t t);
int tenant_goes_first(const tenancy_t *tenancy, int64_t t);

/* ---- budgets.c ---- */

/* Fill all tenants' budgets up to `t`, in whole frames that suit their kernels. */
void budgets_refill(tenancy_t *tenancy, int64_t t);
int64_t budget_frame_ns(const tenancy_t *tenancy, int64_t t);

/* What a budget must be above before a kernel of so much may go. */
int64_t budget_least_ns(card_file_t *file, const card_tenant_t *tenant, int64_t kernel_ns, int64_t t);

void budget_pay(tenancy_t *tenancy, int64_t ns, int is_generous);

/* ---- paid_time.c ---- */

/* How much of [from, to) no process of the tenant has paid for; from now on it counts as paid. */
int64_t budget_unpaid(tenancy_t *tenancy, int64_t from, int64_t to);

/* ---- turns.c ---- */

/* Whether this tenant and another could each fill the card, so that they must take turns. */
int turns_are_needed(const tenancy_t *tenancy, int64_t t);
int turn_is_own(const tenancy_t *tenancy);
int64_t turn_left_ns(const tenancy_t *tenancy, int64_t t);
int turn_is_of(const card_file_t *file, const card_tenant_t *tenant);
int turn_take(tenancy_t *tenancy, int64_t t);
int turn_is_used_up(const tenancy_t *tenancy, int64_t t, int64_t in_flight_ns);
void turn_keep(tenancy_t *tenancy, int64_t until);
void turn_renew(tenancy_t *tenancy, int64_t t);
void turn_end(tenancy_t *tenancy, int64_t t);
void turn_announce_end(tenancy_t *tenancy);

/* Wait until the bell rings, at most `ns`. */
void turn_await(tenancy_t *tenancy, uint32_t heard, int64_t ns);

#endif
