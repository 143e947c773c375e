/* Who shares the card, and what each may still use of its time.

   A tenant is a container; its processes are members. Its budget is filled at the beginning of a frame with its share
   of the frame, debts are carried, and what was not used is lost but for a little. Frames are the same for all tenants
   and fit into a tenth of a second a whole number of times, so every tenth has the same quotas in it. */
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
#define LONGEST_CREDIT_NS (1000 * MILLISECOND)
#define WORST_DEBT_NS (1000 * MILLISECOND)
#define FULL_PERCENT 98                 /* the rest of a card that is full pays for the handing over */

/* Another tenant may have written anything to the file. */
static uint32_t count_within(const _Atomic uint32_t *count, uint32_t most) {
    uint32_t found = atomic_load(count);
    return found < most ? found : most;
}

uint32_t tenant_count(const card_file_t *file) {
    return count_within(&file->tenants_used, CARD_TENANTS);
}

static uint32_t member_count(const card_file_t *file) {
    return count_within(&file->members_used, CARD_MEMBERS);
}

/* ---- joining -------------------------------------------------------------------------------------------------- */

static uint64_t id_of_container(void) {
    struct stat found;
    uint64_t id = region_identity(&found) == 0 ? (uint64_t)found.st_dev << 40 ^ (uint64_t)found.st_ino : 0;
    return id ? id : (uint64_t)getpid() | (uint64_t)now_ns() << 22;
}

static int tenant_is_left(const tenancy_t *tenancy, uint32_t place) {
    uint32_t used = member_count(tenancy->file);
    for (uint32_t member = 0; member < used; member++)
        if (atomic_load(&tenancy->file->members[member].tenant) == place + 1 &&
            !shared_is_free(&tenancy->shared, MEMBER_BYTE(member)))
            return 0;
    return 1;
}

static int take_tenant(tenancy_t *tenancy, uint64_t id) {
    card_file_t *file = tenancy->file;
    int found = -1;
    uint32_t used = tenant_count(file);
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
        if (member_count(tenancy->file) <= member)
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

/* Clocks of processors are a little apart; what lies further in the future is no stamp. */
static int is_recent(const _Atomic uint64_t *stamp, int64_t t, int64_t period) {
    int64_t ago = t - (int64_t)atomic_load_explicit(stamp, memory_order_relaxed);
    return ago < period && ago > -MILLISECOND;
}

static int is_heavy(const card_tenant_t *tenant, int64_t t) {
    return is_recent(&tenant->heavy_ns, t, SHARING_NS);
}

/* One that has turns with others of its kind. */
static int takes_turns(const card_tenant_t *tenant, int64_t t) {
    return is_heavy(tenant, t) && atomic_load(&tenant->share_percent);
}

#define FOR_TENANTS(file, one)                                                                                         \
    for (card_tenant_t *one = (file)->tenants, *end_ = one + tenant_count(file); one < end_; one++)

static int are_turns_needed(card_file_t *file, const card_tenant_t *tenant, int64_t t) {
    if (!takes_turns(tenant, t))
        return 0;
    FOR_TENANTS(file, other)
        if (other != tenant && is_recent(&other->active_ns, t, ACTIVE_NS) && takes_turns(other, t))
            return 1;
    return 0;
}

int turns_are_needed(const tenancy_t *tenancy, int64_t t) {
    return are_turns_needed(tenancy->file, tenancy->own, t);
}

int tenant_is_disturbed(const tenancy_t *tenancy, int64_t t) {
    int has_turns = takes_turns(tenancy->own, t);
    FOR_TENANTS(tenancy->file, other)
        if (other != tenancy->own && is_recent(&other->active_ns, t, ACTIVE_NS) &&
            !(has_turns && takes_turns(other, t)))
            return 1;
    return 0;
}

int tenants_active(const tenancy_t *tenancy, int64_t t) {
    int count = 1;
    FOR_TENANTS(tenancy->file, other)
        count += other != tenancy->own && is_recent(&other->active_ns, t, ACTIVE_NS);
    return count;
}

int tenant_waits(const card_tenant_t *tenant, int64_t t) {
    return is_recent(&tenant->waiting_ns, t, WAITER_NS) && atomic_load(&tenant->budget_ns) > 0;
}

int tenant_has_rivals(const tenancy_t *tenancy, int64_t t) {
    FOR_TENANTS(tenancy->file, other)
        if (other != tenancy->own && tenant_waits(other, t))
            return 1;
    return 0;
}

int tenant_must_yield(const tenancy_t *tenancy, int64_t t) {
    uint32_t own = atomic_load(&tenancy->own->priority);
    if (own == 0)
        return 0;
    FOR_TENANTS(tenancy->file, other)
        if (atomic_load(&other->priority) < own && is_recent(&other->active_ns, t, PRIORITY_NS))
            return 1;
    return 0;
}

int64_t tenant_in_flight(tenancy_t *tenancy, int64_t own_ns, int64_t t) {
    atomic_store(&tenancy->self->in_flight_ns, (uint64_t)(own_ns > 0 ? own_ns : 0));
    atomic_store(&tenancy->self->stamped_ns, (uint64_t)t);
    uint64_t place = atomic_load(&tenancy->self->tenant), sum = 0;
    uint32_t used = member_count(tenancy->file);
    for (uint32_t member = 0; member < used; member++) {
        const card_member_t *one = &tenancy->file->members[member];
        if (one != tenancy->self && atomic_load(&one->tenant) == place && is_recent(&one->stamped_ns, t, MEMBER_NS))
            sum += atomic_load(&one->in_flight_ns);
    }
    return own_ns + (int64_t)sum;
}

/* ---- the budget ----------------------------------------------------------------------------------------------- */

/* Where turns are taken each has one in a frame, so frames must be long. Otherwise they are as short as kernels let
   them be, because nobody waits longer than a frame. */
static int64_t frame_of(card_file_t *file, const card_tenant_t *tenant, int64_t t) {
    if (are_turns_needed(file, tenant, t))
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
    if (!are_turns_needed(file, tenant, t))
        return ns * share / 100;
    FOR_TENANTS(file, other)
        if (other == tenant || (is_recent(&other->active_ns, t, SHARING_NS) && takes_turns(other, t)))
            sum += atomic_load(&other->share_percent);
    return sum > FULL_PERCENT ? ns * share / 100 * FULL_PERCENT / sum : ns * share / 100;
}

int64_t budget_quota_ns(const tenancy_t *tenancy, int64_t t) {
    return part_of(tenancy->file, tenancy->own, budget_frame_ns(tenancy, t), t);
}

static void refill(card_file_t *file, card_tenant_t *tenant, int64_t t) {
    int64_t frame = frame_of(file, tenant, t), boundary = t / frame * frame;
    uint64_t before = atomic_load(&tenant->refilled_ns);
    if ((int64_t)before >= boundary ||
        !atomic_compare_exchange_strong(&tenant->refilled_ns, &before, (uint64_t)boundary))
        return;
    int64_t passed = before ? boundary - (int64_t)before : frame;
    if (passed > LONGEST_CREDIT_NS)
        passed = LONGEST_CREDIT_NS;
    int64_t more = part_of(file, tenant, passed, t), quota = part_of(file, tenant, LONG_FRAME_NS, t);
    int64_t kernel = (int64_t)atomic_load(&tenant->kernel_ns);
    int64_t most = quota + quota / 10 + (kernel < quota / 2 ? kernel : quota / 2);
    int64_t budget = atomic_fetch_add(&tenant->budget_ns, more) + more;
    if (budget > most)
        atomic_fetch_sub(&tenant->budget_ns, budget - most);
}

/* Everybody's, so that who is first to look at the beginning of a frame sees who else has time to use. */
void budgets_refill(tenancy_t *tenancy, int64_t t) {
    FOR_TENANTS(tenancy->file, tenant)
        if (atomic_load(&tenant->share_percent) && is_recent(&tenant->active_ns, t, SHARING_NS))
            refill(tenancy->file, tenant, t);
}

void budget_pay(tenancy_t *tenancy, int64_t ns, int is_generous) {
    int64_t budget = atomic_fetch_sub(&tenancy->own->budget_ns, ns) - ns, worst = -WORST_DEBT_NS;
    if (is_generous)            /* what it used while nobody else wanted it is not owed */
        worst = -LONG_FRAME_NS * (int64_t)atomic_load(&tenancy->own->share_percent) / 100;
    if (budget < worst)
        atomic_fetch_add(&tenancy->own->budget_ns, worst - budget);
}
