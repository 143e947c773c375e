/* What each tenant may still use of the card's time.

   A budget is filled at the beginning of a frame with the tenant's share of the frame. Debts are carried. What was not
   used is lost but for a little, unless it could not be used: because others had their turn, or because the tenant's
   own work is still under way and will be paid from it. Frames are the same for all tenants and fit into a tenth of a
   second a whole number of times, so every tenth has the same quotas in it. */
#include "tenancy.h"

#define SHORT_FRAME_NS (5 * MILLISECOND)
#define LONG_FRAME_NS (20 * MILLISECOND)
#define KERNELS_IN_QUOTA 4
#define LONGEST_CREDIT_NS (10000 * MILLISECOND)
#define WORST_DEBT_NS (5000 * MILLISECOND)
#define FULL_PERCENT 98                 /* the rest of a card that is full pays for the handing over */

/* Where turns are taken each has one in a frame, so frames must be long. Otherwise they are as short as kernels let
   them be, because nobody waits longer than a frame. */
static int64_t frame_of(card_file_t *file, const card_tenant_t *tenant, int64_t t) {
    if (turns_are_needed_by(file, tenant, t))
        return LONG_FRAME_NS;
    int64_t wanted = (int64_t)atomic_load(&tenant->kernel_ns) * KERNELS_IN_QUOTA * 100;
    int64_t share = (int64_t)atomic_load(&tenant->share_percent), frame = SHORT_FRAME_NS;
    while (frame < LONG_FRAME_NS && frame * share < wanted)
        frame *= 2;
    return frame;
}

int64_t budget_frame_ns(const tenancy_t *tenancy, int64_t t) {
    return frame_of(tenancy->file, tenancy->own, t);
}

/* What the tenant gets in so much time: its share, or a little less where the card is full. */
static int64_t part_of(card_file_t *file, const card_tenant_t *tenant, int64_t ns, int64_t t) {
    int64_t share = atomic_load(&tenant->share_percent), sum = 0;
    if (!turns_are_needed_by(file, tenant, t))
        return ns * share / 100;
    FOR_TENANTS(file, other)
        if (other == tenant || (stamp_is_recent(&other->active_ns, t, SHARING_NS) && tenant_takes_turns(other, t)))
            sum += atomic_load(&other->share_percent);
    return sum > FULL_PERCENT ? ns * share / 100 * FULL_PERCENT / sum : ns * share / 100;
}

int64_t budget_least_ns(card_file_t *file, const card_tenant_t *tenant, int64_t kernel_ns, int64_t t) {
    int64_t quarter = part_of(file, tenant, frame_of(file, tenant, t), t) / 4;
    return kernel_ns / 2 < quarter ? kernel_ns / 2 : quarter;
}

/* How long others that it has turns with may keep the card at a time. */
static int64_t longest_wait_of(card_file_t *file, const card_tenant_t *tenant, int64_t t) {
    int64_t longest = 0;
    if (!tenant_takes_turns(tenant, t))
        return 0;
    FOR_TENANTS(file, other) {
        int64_t kernel = (int64_t)atomic_load(&other->kernel_ns);
        if (other != tenant && kernel > longest && tenant_takes_turns(other, t))
            longest = kernel < LONGEST_CREDIT_NS ? kernel : LONGEST_CREDIT_NS;
    }
    return longest;
}

/* Beyond which a budget grows no further. */
static int64_t most_of(card_file_t *file, const card_tenant_t *tenant, int64_t t) {
    int64_t quota = part_of(file, tenant, LONG_FRAME_NS, t), kernel = (int64_t)atomic_load(&tenant->kernel_ns);
    int64_t most = quota + quota / 10 + (kernel < quota / 2 ? kernel : quota / 2);
    most += part_of(file, tenant, longest_wait_of(file, tenant, t), t) + tenant_under_way(file, tenant, t);
    if (tenant_is_kept_waiting(file, tenant, t))
        most += quota;
    return most > 0 && most < LONGEST_CREDIT_NS ? most : LONGEST_CREDIT_NS;
}

/* Whatever another tenant has written there, nobody waits for it for good. */
static int64_t time_to_fill(uint64_t before, int64_t boundary, int64_t frame) {
    int64_t passed = boundary - (int64_t)before;
    if (before == 0 || passed < 0)
        return frame;
    return passed < LONGEST_CREDIT_NS ? passed : LONGEST_CREDIT_NS;
}

static void refill(card_file_t *file, card_tenant_t *tenant, int64_t t) {
    int64_t frame = frame_of(file, tenant, t), boundary = t / frame * frame;
    uint64_t before = atomic_load(&tenant->refilled_ns);
    int is_filled = (int64_t)before >= boundary && (int64_t)before < boundary + FUTURE_NS;
    if (is_filled || !atomic_compare_exchange_strong(&tenant->refilled_ns, &before, (uint64_t)boundary))
        return;
    int64_t more = part_of(file, tenant, time_to_fill(before, boundary, frame), t), most = most_of(file, tenant, t);
    int64_t budget = atomic_fetch_add(&tenant->budget_ns, more) + more;
    int64_t fair = budget > most ? most : budget < -WORST_DEBT_NS ? -WORST_DEBT_NS : budget;
    if (fair != budget)
        atomic_fetch_add(&tenant->budget_ns, fair - budget);
}

/* Everybody's, so that who is first to look at the beginning of a frame sees who else has time to use. */
void budgets_refill(tenancy_t *tenancy, int64_t t) {
    FOR_TENANTS(tenancy->file, tenant)
        if (atomic_load(&tenant->share_percent) && stamp_is_recent(&tenant->active_ns, t, SHARING_NS))
            refill(tenancy->file, tenant, t);
}

void budget_pay(tenancy_t *tenancy, int64_t ns, int is_generous) {
    int64_t budget = atomic_fetch_sub(&tenancy->own->budget_ns, ns) - ns, worst = -WORST_DEBT_NS;
    if (is_generous)            /* what it used while nobody else wanted it is not owed */
        worst = -LONG_FRAME_NS * (int64_t)atomic_load(&tenancy->own->share_percent) / 100;
    if (budget < worst)
        atomic_fetch_add(&tenancy->own->budget_ns, worst - budget);
}
