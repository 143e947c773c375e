/* The file that all processes of a container share: for each process a slot, in it what it holds of each card.

   A figure is written by its owner alone and in one step, and nothing is kept twice. So whoever is killed, at whichever
   instruction, leaves a state that is true: a slot of somebody dead. Slots never move; they are given and taken back
   under a lock that the kernel lets go of at any death. What is held is the sum of all slots, so there is no total that
   could drift from them. Cards for which the file has no room are counted in the process alone. */
#define _GNU_SOURCE
#include "compute.h"
#include "memory.h"
#include "region_file.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNTED_FILE "/run/tessera/tile/region"
#define LOCK_BYTE 0
#define SLOT_BYTE(slot) (1 + (slot))
#define MEASURE_BYTE SLOT_BYTE(REGION_SLOTS)
#define AGENT_PATIENCE_MS 100

static struct {
    pthread_mutex_t mutex, measure_mutex;
    _Atomic int is_joined;
    int is_alone;               /* the file cannot be shared */
    shared_t shared;
} region = {.mutex = PTHREAD_MUTEX_INITIALIZER,
            .measure_mutex = PTHREAD_MUTEX_INITIALIZER,
            .shared = {.descriptor = -1}};

region_here_t region_here;

/* ---- locks ---------------------------------------------------------------------------------------------------- */

static int lock(pthread_mutex_t *mutex, off_t byte) {
    pthread_mutex_lock(mutex);
    if (region.is_alone || shared_lock(&region.shared, byte) == 0)
        return 0;
    pthread_mutex_unlock(mutex);
    return -1;
}

int region_try_lock(void) {
    if (pthread_mutex_trylock(&region.mutex))
        return -1;
    if (region.is_alone || shared_keep(&region.shared, LOCK_BYTE) == 0)
        return 0;
    pthread_mutex_unlock(&region.mutex);
    return -1;
}

static void unlock(pthread_mutex_t *mutex, off_t byte) {
    if (!region.is_alone)
        shared_unlock(&region.shared, byte);
    pthread_mutex_unlock(mutex);
}

int region_lock(void) {
    return lock(&region.mutex, LOCK_BYTE);
}

void region_unlock(void) {
    unlock(&region.mutex, LOCK_BYTE);
}

int region_begin_measuring(void) {
    return lock(&region.measure_mutex, MEASURE_BYTE);
}

void region_end_measuring(void) {
    unlock(&region.measure_mutex, MEASURE_BYTE);
}

/* ---- slots ---------------------------------------------------------------------------------------------------- */

static void empty(region_slot_t *slot) {
    for (int card = 0; card < REGION_CARDS; card++) {
        atomic_store(&slot->parts[card].asked, 0);
        atomic_store(&slot->parts[card].bytes, 0);
    }
    atomic_store(&slot->host_pid, 0);
    atomic_store(&slot->pid, 0);
}

/* Process numbers come again, and mean nothing in another namespace. But each process holds the lock on its own byte,
   and the kernel lets go of it at any death, and at an exec. */
int region_slot_is_alive(int slot) {
    const region_slot_t *one = &region_here.file->slots[slot];
    if (atomic_load(&one->pid) == 0)
        return 0;
    return one == region_here.own || !shared_is_free(&region.shared, SLOT_BYTE(slot));
}

int region_has_dead(int card) {
    int used = (int)region_slot_count();
    for (int slot = 0; slot < used; slot++)
        if (atomic_load(&region_here.file->slots[slot].parts[card].bytes) && !region_slot_is_alive(slot))
            return 1;
    return 0;
}

/* What nobody claims is some other process's, as long as there is one. */
static void forget_unclaimed(int card, int used) {
    for (int slot = 0; slot < used; slot++) {
        const region_slot_t *one = &region_here.file->slots[slot];
        if (one != region_here.own && atomic_load(&one->parts[card].bytes))
            return;
    }
    atomic_store(&region_here.file->cards[card].unclaimed_bytes, 0);
}

void bury_the_dead(void) {
    int used = (int)region_slot_count();
    for (int slot = 0; slot < used; slot++)
        if (atomic_load(&region_here.file->slots[slot].pid) != 0 && !region_slot_is_alive(slot))
            empty(&region_here.file->slots[slot]);
    while (used > 0 && atomic_load(&region_here.file->slots[used - 1].pid) == 0)
        used--;
    atomic_store(&region_here.file->slots_used, (uint32_t)used);
    for (int card = 0; card < REGION_CARDS; card++)
        if (atomic_load(&region_here.file->cards[card].unclaimed_bytes))
            forget_unclaimed(card, used);
}

static int is_to_be_had(int slot) {
    if (atomic_load(&region_here.file->slots[slot].pid) != 0)
        return 0;
    return region.is_alone || shared_keep(&region.shared, SLOT_BYTE(slot)) == 0;
}

static int take_slot(void) {
    for (int slot = 0; slot < REGION_SLOTS; slot++) {
        region_slot_t *one = &region_here.file->slots[slot];
        if (!is_to_be_had(slot))
            continue;
        empty(one);
        if (atomic_load(&region_here.file->slots_used) <= (uint32_t)slot)
            atomic_store(&region_here.file->slots_used, (uint32_t)slot + 1);
        atomic_store(&one->pid, (uint64_t)getpid());
        region_here.own = one;
        return 0;
    }
    return -1;
}

/* ---- joining -------------------------------------------------------------------------------------------------- */

/* What the node has mounted counts, whatever a login or a child has for an environment. Without it, where HAMi would
   share its file, if the node says so; by the tile's name otherwise, because containers may have one /tmp between them.
   The version is in the name, so that two releases in one container do not meet. */
static void write_path(char *path) {
    if (access(MOUNTED_FILE, F_OK) == 0) {
        snprintf(path, PATH_MAX, "%s", MOUNTED_FILE);
        return;
    }
    const char *chosen = getenv("TESSERA_REGION"), *cache = getenv("CUDA_DEVICE_MEMORY_SHARED_CACHE");
    const char *tile = getenv("TESSERA_TILE");
    if (chosen)
        snprintf(path, PATH_MAX, "%s", chosen);
    else if (cache)
        snprintf(path, PATH_MAX, "%s.tessera-%d", cache, REGION_VERSION);
    else
        snprintf(path, PATH_MAX, "/tmp/tessera-%d-%s.region", REGION_VERSION, tile ? tile : "container");
}

static const char *enter_file(void) {
    if (shared_lock(&region.shared, LOCK_BYTE))
        return "its lock is not let go of";
    const char *problem = NULL;
    if (region_here.file->magic == 0) {
        region_here.file->version = REGION_VERSION;
        region_here.file->magic = REGION_MAGIC;
    }
    if (region_here.file->magic != REGION_MAGIC || region_here.file->version != REGION_VERSION) {
        problem = "it is no region of this version, remove it";
    } else if (take_slot()) {
        bury_the_dead();
        problem = take_slot() ? "more processes than it has room for" : NULL;
    }
    shared_unlock(&region.shared, LOCK_BYTE);
    return problem;
}

static void count_alone(const char *path, const char *problem) {
    static region_file_t alone;
    say("%s cannot be shared: %s; the limit holds for each process alone", path, problem);
    shared_close(&region.shared);
    memset(&alone, 0, sizeof alone);
    region.is_alone = 1;
    region_here.file = &alone;
    take_slot();
}

/* A child has neither the memory nor the contexts of its parent, and no use of its slot. */
static void forget_in_child(void) {
    pthread_mutex_init(&region.mutex, NULL);
    pthread_mutex_init(&region.measure_mutex, NULL);
    shared_close(&region.shared);
    region.is_alone = 0;
    atomic_store(&region.is_joined, 0);
    memset(&region_here, 0, sizeof region_here);
    blocks_forget_all();
    forget_small_blocks();
    forget_upkeep();
    forget_processes();
    forget_pools();
    forget_leaving();
    forget_exports();
    forget_graph_memory();
    forget_contexts();
    forget_devices();
    forget_limits();
    forget_spilled();
    forget_utilisation();
    forget_gates();
    forget_timekeeper();
    forget_sample();
    forget_captures();
}

static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;

static void install_fork_handler(void) {
    pthread_atfork(NULL, NULL, forget_in_child);
}

void region_join(void) {
    if (atomic_load_explicit(&region.is_joined, memory_order_acquire))
        return;
    pthread_once(&fork_handler_once, install_fork_handler);
    pthread_mutex_lock(&region.mutex);
    if (!atomic_load(&region.is_joined)) {
        char path[PATH_MAX];
        write_path(path);
        const char *problem = shared_open(&region.shared, path, sizeof(region_file_t), (void **)&region_here.file);
        problem = problem ? problem : enter_file();
        if (problem)
            count_alone(path, problem);
        atomic_store(&region_here.own->host_pid, ask_host_pid(AGENT_PATIENCE_MS));
        atomic_store_explicit(&region.is_joined, 1, memory_order_release);
    }
    pthread_mutex_unlock(&region.mutex);
}

/* ---- cards ---------------------------------------------------------------------------------------------------- */

static int is_partition_or_card(const char *uuid) {
    return strncmp(uuid, "GPU-", 4) == 0 || strncmp(uuid, "MIG-", 4) == 0;
}

/* Drivers do not always say whether a UUID is that of a card or of a part of one. */
int is_same_card(const char *one, const char *other) {
    if (is_partition_or_card(one) && is_partition_or_card(other))
        return strcmp(one + 4, other + 4) == 0;
    return strcmp(one, other) == 0;
}

/* Names are written once and never taken back, so they can be read without the lock. */
static int find_card(const char *uuid, int first, int count) {
    for (int card = first; card < first + count; card++)
        if (is_same_card(region_uuid(card), uuid))
            return card;
    return NO_CARD;
}

static int add_card(const char *uuid, int first, int count) {
    int card = find_card(uuid, first, count);
    for (int one = first; one < first + count && card == NO_CARD; one++)
        if (*region_uuid(one) == '\0')
            card = one;
    if (card != NO_CARD && *region_uuid(card) == '\0')
        snprintf(region_figures(card)->uuid, UUID_LENGTH, "%s", uuid);
    return card;
}

/* A card for which there is no room in the file still has its limit, in each process alone. */
static int add_card_beyond(const char *uuid) {
    static int has_been_said;
    pthread_mutex_lock(&region.mutex);
    int card = add_card(uuid, REGION_CARDS, CARDS_BEYOND);
    if (!has_been_said)
        say("%s is one card more than %d can be shared; its limit holds for each process alone", uuid, REGION_CARDS);
    has_been_said = 1;
    pthread_mutex_unlock(&region.mutex);
    return card;
}

int region_card(const char *uuid) {
    region_join();
    int card = find_card(uuid, 0, MOST_CARDS);
    if (card == NO_CARD && region_lock() == 0) {
        card = add_card(uuid, 0, REGION_CARDS);
        region_unlock();
    }
    return card == NO_CARD ? add_card_beyond(uuid) : card;
}

region_card_t *region_figures(int card) {
    return card < REGION_CARDS ? &region_here.file->cards[card] : &region_here.beyond[card - REGION_CARDS];
}

const char *region_uuid(int card) {
    return region_figures(card)->uuid;
}

int region_identity(struct stat *identity) {
    *identity = region.shared.identity;
    return region.is_alone ? -1 : 0;
}
