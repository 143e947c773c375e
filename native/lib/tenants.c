/* Who shares the card. A tenant is a container; its processes are members. */
#define _GNU_SOURCE
#include "tenancy.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNTED_DIRECTORY "/run/tessera/cards"
#define LOCK_BYTE 0
#define MEMBER_BYTE(member) (1 + (member))
#define ACTIVE_NS (60 * MILLISECOND)
#define PRIORITY_NS (30 * MILLISECOND)
#define PRESENT_NS (10000 * MILLISECOND)        /* after which one that must yield is taken to have gone */
#define WAITER_NS (6 * MILLISECOND)
#define MEMBER_NS (100 * MILLISECOND)

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

static int tenant_is_left(tenancy_t *tenancy, uint32_t place) {
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
        atomic_store(&one->demand_ppm, 0);
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

/* What the node has mounted counts, whatever the environment says. Returns whether there is to be a file. */
static int write_path(char *path, int card) {
    const char *chosen = getenv("TESSERA_CARDS");
    snprintf(path, PATH_MAX, "%s/%s", MOUNTED_DIRECTORY, region_uuid(card));
    if (access(path, F_OK) == 0)
        return 1;
    if (chosen)
        snprintf(path, PATH_MAX, "%s/%s", chosen, region_uuid(card));
    return chosen != NULL;
}

void tenancy_join(tenancy_t *tenancy, int card) {
    char path[PATH_MAX];
    *tenancy = (tenancy_t){.shared = {.descriptor = -1}};
    if (!write_path(path, card)) {
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

/* `t` may have been read a while ago, so a stamp may be later; what lies far in the future is no stamp. */
int stamp_is_recent(const _Atomic uint64_t *stamp, int64_t t, int64_t period) {
    int64_t ago = t - (int64_t)atomic_load_explicit(stamp, memory_order_relaxed);
    return ago < period && ago > -FUTURE_NS;
}

static int is_heavy(const card_tenant_t *tenant, int64_t t) {
    return stamp_is_recent(&tenant->heavy_ns, t, SHARING_NS);
}

/* One that has turns with others of its kind. */
int tenant_takes_turns(const card_tenant_t *tenant, int64_t t) {
    return is_heavy(tenant, t) && atomic_load(&tenant->share_percent);
}

int turns_are_needed_by(card_file_t *file, const card_tenant_t *tenant, int64_t t) {
    if (!tenant_takes_turns(tenant, t))
        return 0;
    FOR_TENANTS(file, other)
        if (other != tenant && stamp_is_recent(&other->active_ns, t, ACTIVE_NS) && tenant_takes_turns(other, t))
            return 1;
    return 0;
}

int turns_are_needed(const tenancy_t *tenancy, int64_t t) {
    return turns_are_needed_by(tenancy->file, tenancy->own, t);
}

int tenant_is_disturbed(const tenancy_t *tenancy, int64_t t) {
    int has_turns = tenant_takes_turns(tenancy->own, t);
    FOR_TENANTS(tenancy->file, other)
        if (other != tenancy->own && stamp_is_recent(&other->active_ns, t, ACTIVE_NS) &&
            !(has_turns && tenant_takes_turns(other, t)))
            return 1;
    return 0;
}

void tenant_is_at_work(tenancy_t *tenancy, int64_t t) {
    atomic_store(&tenancy->own->active_ns, (uint64_t)t);
    if (is_heavy(tenancy->own, t))
        atomic_store(&tenancy->own->heavy_ns, (uint64_t)t);
}

int tenants_active(const tenancy_t *tenancy, int64_t t) {
    int count = 1;
    FOR_TENANTS(tenancy->file, other)
        count += other != tenancy->own && stamp_is_recent(&other->active_ns, t, ACTIVE_NS);
    return count;
}

int tenant_waits(card_file_t *file, const card_tenant_t *tenant, int64_t t) {
    return stamp_is_recent(&tenant->waiting_ns, t, WAITER_NS) &&
           atomic_load(&tenant->budget_ns) > budget_least_ns(file, tenant, (int64_t)atomic_load(&tenant->kernel_ns), t);
}

int tenant_is_kept_waiting(card_file_t *file, const card_tenant_t *tenant, int64_t t) {
    int is_about_to = stamp_is_recent(&tenant->waiting_ns, t, WAITER_NS) || turn_is_of(file, tenant);
    return is_about_to && turns_are_needed_by(file, tenant, t);
}

int tenant_has_rivals(const tenancy_t *tenancy, int64_t t) {
    FOR_TENANTS(tenancy->file, other)
        if (other != tenancy->own && tenant_waits(tenancy->file, other, t))
            return 1;
    return 0;
}

int tenant_must_yield(const tenancy_t *tenancy, int64_t t) {
    uint32_t own = atomic_load(&tenancy->own->priority);
    if (own == 0)
        return 0;
    FOR_TENANTS(tenancy->file, other)
        if (atomic_load(&other->priority) < own && stamp_is_recent(&other->active_ns, t, PRIORITY_NS))
            return 1;
    return 0;
}

int tenant_goes_first(const tenancy_t *tenancy, int64_t t) {
    uint32_t own = atomic_load(&tenancy->own->priority);
    FOR_TENANTS(tenancy->file, other)
        if (atomic_load(&other->priority) > own && stamp_is_recent(&other->active_ns, t, PRESENT_NS))
            return 1;
    return 0;
}

/* ---- members -------------------------------------------------------------------------------------------------- */

#define FOR_MEMBERS(file, owner, one)                                                                                  \
    for (const card_member_t *one = (file)->members, *last_ = one + member_count(file); one < last_; one++)            \
        if (atomic_load(&one->tenant) == (uint64_t)((owner) - (file)->tenants) + 1)

int64_t tenant_under_way(const card_file_t *file, const card_tenant_t *tenant, int64_t t) {
    uint64_t sum = 0;
    FOR_MEMBERS(file, tenant, one)
        if (stamp_is_recent(&one->stamped_ns, t, MEMBER_NS))
            sum += atomic_load(&one->in_flight_ns);
    return (int64_t)sum;
}

void tenant_say_demand(tenancy_t *tenancy, double demand) {
    atomic_store(&tenancy->self->demand_ppm, (uint64_t)(demand * 1e6));
}

double tenant_demand(const tenancy_t *tenancy, int64_t t) {
    uint64_t sum = 0;
    FOR_MEMBERS(tenancy->file, tenancy->own, one)
        if (stamp_is_recent(&one->stamped_ns, t, SHARING_NS))
            sum += atomic_load(&one->demand_ppm);
    return (double)sum / 1e6;
}

int64_t tenant_in_flight(tenancy_t *tenancy, int64_t own_ns, int64_t t) {
    atomic_store(&tenancy->self->in_flight_ns, (uint64_t)(own_ns > 0 ? own_ns : 0));
    atomic_store(&tenancy->self->stamped_ns, (uint64_t)t);
    return tenant_under_way(tenancy->file, tenancy->own, t);
}
