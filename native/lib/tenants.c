/* Who shares the card, and what each may still use of its time.

   A tenant is a container; its processes are members. Its budget is filled at the beginning of a frame with its share of
   the frame, debts are carried, and what was not used is lost but for a little. Frames are the same for all tenants and
   fit into a tenth of a second a whole number of times, so every tenth has the same quotas in it. */
#define _GNU_SOURCE
#include "compute.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOCK_BYTE 0
#define MEMBER_BYTE(member) (1 + (member))
#define ACTIVE_NS (60 * MILLISECOND)
#define SHARING_NS (200 * MILLISECOND)  /* for the sum of shares, which should not change with every pause */
#define PRIORITY_NS (30 * MILLISECOND)
#define WAITER_NS (6 * MILLISECOND)
#define MEMBER_NS (100 * MILLISECOND)
#define SHORT_FRAME_NS (5 * MILLISECOND)
#define LONG_FRAME_NS (20 * MILLISECOND)
#define KERNELS_IN_QUOTA 4
#define LONGEST_CREDIT 50               /* frames */
#define WORST_DEBT_NS (10000 * MILLISECOND)
#define FULL_PERCENT 98                 /* the rest of a card that is full pays for the handing over */

/* ---- joining -------------------------------------------------------------------------------------------------- */

static uint64_t id_of_container(void) {
    struct stat found;
    uint64_t id = region_identity(&found) == 0 ? (uint64_t)found.st_dev << 40 ^ (uint64_t)found.st_ino : 0;
    return id ? id : (uint64_t)getpid() | (uint64_t)now_ns() << 22;
}

static int tenant_is_left(const tenancy_t *tenancy, uint32_t place) {
    uint32_t used = atomic_load(&tenancy->file->members_used);
    for (uint32_t member = 0; member < used; member++)
        if (atomic_load(&tenancy->file->members[member].tenant) == place + 1 &&
            !shared_is_free(&tenancy->shared, MEMBER_BYTE(member)))
            return 0;
    return 1;
}

static int take_tenant(tenancy_t *tenancy, uint64_t id) {
    card_file_t *file = tenancy->file;
    int found = -1;
    uint32_t used = atomic_load(&file->tenants_used);
    for (uint32_t place = 0; place < used && found == -1; place++)
        if (atomic_load(&file->tenants[place].id) == id)
            found = (int)place;
    for (uint32_t place = 0; place < CARD_TENANTS && found == -1; place++)
        if (place >= used || tenant_is_left(tenancy, place)) {
            memset(&file->tenants[place], 0, sizeof file->tenants[place]);
            found = (int)place;
        }
    if (found == -1)
        return -1;
    if (used <= (uint32_t)found)
        atomic_store(&file->tenants_used, (uint32_t)found + 1);
    atomic_store(&file->tenants[found].id, id);
    tenancy->own = &file->tenants[found];
    return found;
}

static int take_member(tenancy_t *tenancy, int place) {
    for (uint32_t member = 0; member < CARD_MEMBERS; member++) {
        card_member_t *one = &tenancy->file->members[member];
        if (tenancy->shared.descriptor != -1 && shared_keep(&tenancy->shared, MEMBER_BYTE(member)))
            continue;
        atomic_store(&one->in_flight_ns, 0);
        atomic_store(&one->tenant, (uint64_t)place + 1);
        if (atomic_load(&tenancy->file->members_used) <= member)
            atomic_store(&tenancy->file->members_used, member + 1);
        tenancy->self = one;
        return 0;
    }
    return -1;
}

static const char *enter(tenancy_t *tenancy) {
    if (tenancy->shared.descriptor != -1 && shared_lock(&tenancy->shared, LOCK_BYTE))
        return "its lock is not let go of";
    const char *problem = NULL;
    if (tenancy->file->magic == 0) {
        tenancy->file->version = CARD_VERSION;
        tenancy->file->magic = CARD_MAGIC;
    }
    if (tenancy->file->magic != CARD_MAGIC || tenancy->file->version != CARD_VERSION) {
        problem = "it is no file of this version, remove it";
    } else {
        int place = take_tenant(tenancy, id_of_container());
        problem = place == -1 || take_member(tenancy, place) ? "more tenants than it has room for" : NULL;
    }
    if (tenancy->shared.descriptor != -1)
        shared_unlock(&tenancy->shared, LOCK_BYTE);
    return problem;
}

static void go_alone(tenancy_t *tenancy, const char *path, const char *problem) {
    if (problem)
        say("%s cannot be shared: %s; the share of GPU time holds as if no other tenant was there", path, problem);
    shared_close(&tenancy->shared);
    tenancy->file = calloc(1, sizeof *tenancy->file);
    if (tenancy->file && enter(tenancy))
        tenancy->file = NULL;
}

void tenancy_join(tenancy_t *tenancy, int card) {
    char path[PATH_MAX];
    const char *directory = getenv("TESSERA_CARDS");
    snprintf(path, sizeof path, "%s/%s", directory ? directory : "/run/tessera/cards", region_uuid(card));
    *tenancy = (tenancy_t){.shared = {.descriptor = -1}};
    if (directory == NULL && access(path, F_OK)) {
        go_alone(tenancy, path, NULL);
        return;
    }
    const char *problem = shared_open(&tenancy->shared, path, sizeof(card_file_t), (void **)&tenancy->file);
    problem = problem ? problem : enter(tenancy);
    if (problem)
        go_alone(tenancy, path, problem);
}

void tenancy_leave_in_child(tenancy_t *tenancy) {
    shared_close(&tenancy->shared);
    *tenancy = (tenancy_t){.shared = {.descriptor = -1}};
}

/* ---- the others ----------------------------------------------------------------------------------------------- */

static int is_recent(const _Atomic uint64_t *stamp, int64_t t, int64_t period) {
    uint64_t at = atomic_load_explicit(stamp, memory_order_relaxed);
    return at != 0 && t - (int64_t)at < period;
}

int tenant_is_heavy(const card_tenant_t *tenant, int64_t t) {
    return is_recent(&tenant->heavy_ns, t, SHARING_NS);
}

#define FOR_OTHERS(tenancy, other)                                                                                     \
    for (const card_tenant_t *other = (tenancy)->file->tenants,                                                        \
                             *end_ = other + atomic_load(&(tenancy)->file->tenants_used);                              \
         other < end_; other++)                                                                                        \
        if (other != (tenancy)->own)

int tenant_is_disturbed(const tenancy_t *tenancy, int64_t t) {
    int is_heavy = tenant_is_heavy(tenancy->own, t);
    FOR_OTHERS(tenancy, other)
        if (is_recent(&other->active_ns, t, ACTIVE_NS) &&
            !(is_heavy && tenant_is_heavy(other, t) && atomic_load(&other->share_percent)))
            return 1;
    return 0;
}

int turns_are_needed(const tenancy_t *tenancy, int64_t t) {
    if (!tenant_is_heavy(tenancy->own, t))
        return 0;
    FOR_OTHERS(tenancy, other)
        if (is_recent(&other->active_ns, t, ACTIVE_NS) && tenant_is_heavy(other, t) &&
            atomic_load(&other->share_percent))
            return 1;
    return 0;
}

int tenant_has_rivals(const tenancy_t *tenancy, int64_t t) {
    FOR_OTHERS(tenancy, other)
        if (is_recent(&other->waiting_ns, t, WAITER_NS) && atomic_load(&other->budget_ns) > 0)
            return 1;
    return 0;
}

int tenant_must_yield(const tenancy_t *tenancy, int64_t t) {
    uint32_t own = atomic_load(&tenancy->own->priority);
    if (own == 0)
        return 0;
    FOR_OTHERS(tenancy, other)
        if (atomic_load(&other->priority) < own && is_recent(&other->active_ns, t, PRIORITY_NS))
            return 1;
    return 0;
}

int64_t tenant_in_flight(tenancy_t *tenancy, int64_t own_ns, int64_t t) {
    atomic_store(&tenancy->self->in_flight_ns, (uint64_t)(own_ns > 0 ? own_ns : 0));
    atomic_store(&tenancy->self->stamped_ns, (uint64_t)t);
    uint64_t place = atomic_load(&tenancy->self->tenant), sum = 0;
    uint32_t used = atomic_load(&tenancy->file->members_used);
    for (uint32_t member = 0; member < used; member++) {
        const card_member_t *one = &tenancy->file->members[member];
        if (one != tenancy->self && atomic_load(&one->tenant) == place && is_recent(&one->stamped_ns, t, MEMBER_NS))
            sum += atomic_load(&one->in_flight_ns);
    }
    return own_ns + (int64_t)sum;
}

/* ---- the budget ----------------------------------------------------------------------------------------------- */

/* Where turns are taken each has one in a frame, so frames must be long. Otherwise they are as short as kernels let them
   be, because nobody waits longer than a frame. */
int64_t budget_frame_ns(const tenancy_t *tenancy, int64_t t) {
    if (turns_are_needed(tenancy, t))
        return LONG_FRAME_NS;
    int64_t wanted = (int64_t)atomic_load(&tenancy->own->kernel_ns) * KERNELS_IN_QUOTA * 100;
    int64_t share = (int64_t)atomic_load(&tenancy->own->share_percent), frame = SHORT_FRAME_NS;
    while (frame < LONG_FRAME_NS && frame * share < wanted)
        frame *= 2;
    return frame;
}

static int64_t sum_of_shares(const tenancy_t *tenancy, int64_t t) {
    int64_t sum = atomic_load(&tenancy->own->share_percent);
    FOR_OTHERS(tenancy, other)
        if (is_recent(&other->active_ns, t, SHARING_NS) && tenant_is_heavy(other, t))
            sum += atomic_load(&other->share_percent);
    return sum;
}

int64_t budget_quota_ns(const tenancy_t *tenancy, int64_t t) {
    int64_t share = atomic_load(&tenancy->own->share_percent), quota = budget_frame_ns(tenancy, t) * share / 100;
    int64_t sum = turns_are_needed(tenancy, t) ? sum_of_shares(tenancy, t) : share;
    return sum > FULL_PERCENT && sum > share ? quota * FULL_PERCENT / sum : quota;
}

void budget_refill(tenancy_t *tenancy, int64_t t) {
    card_tenant_t *own = tenancy->own;
    int64_t frame = budget_frame_ns(tenancy, t), boundary = t / frame * frame, quota = budget_quota_ns(tenancy, t);
    uint64_t before = atomic_load(&own->refilled_ns);
    if ((int64_t)before >= boundary || !atomic_compare_exchange_strong(&own->refilled_ns, &before, (uint64_t)boundary))
        return;
    int64_t passed = before ? boundary - (int64_t)before : frame;
    if (passed > LONGEST_CREDIT * frame)
        passed = LONGEST_CREDIT * frame;
    int64_t more = (int64_t)((double)quota * (double)passed / (double)frame), kernel = (int64_t)atomic_load(&own->kernel_ns);
    int64_t most = quota + quota / 10 + (kernel < quota / 2 ? kernel : quota / 2);
    int64_t budget = atomic_fetch_add(&own->budget_ns, more) + more;
    if (budget > most)
        atomic_fetch_sub(&own->budget_ns, budget - most);
}

void budget_pay(tenancy_t *tenancy, int64_t ns, int is_generous) {
    int64_t budget = atomic_fetch_sub(&tenancy->own->budget_ns, ns) - ns, worst = -WORST_DEBT_NS;
    if (is_generous)            /* what it used while nobody else wanted it is not owed */
        worst = -LONG_FRAME_NS * (int64_t)atomic_load(&tenancy->own->share_percent) / 100;
    if (budget < worst)
        atomic_fetch_add(&tenancy->own->budget_ns, worst - budget);
}

int64_t budget_unpaid(tenancy_t *tenancy, int64_t from, int64_t to) {
    uint64_t until = atomic_load(&tenancy->own->billed_until_ns);
    while ((int64_t)until < to &&
           !atomic_compare_exchange_weak(&tenancy->own->billed_until_ns, &until, (uint64_t)to)) {}
    int64_t begin = (int64_t)until > from ? (int64_t)until : from;
    return to > begin ? to - begin : 0;
}
