/* The file that all processes of a container share: for each process a slot, in it what it holds of each card.

   A figure is written by its owner alone and in one step, and nothing is kept twice. So whoever is killed, at whichever
   instruction, leaves a state that is true: a slot of somebody dead. Slots never move; they are given and taken back
   under a lock that the kernel lets go of at any death. What is held is the sum of all slots, so there is no total that
   could drift from them. */
#define _GNU_SOURCE
#include "tessera.h"
#include "region_file.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOCK_BYTE 0
#define SLOT_BYTE(slot) (1 + (slot))
#define BURIAL_PERIOD_MS 100    /* for those who only look; whoever is refused always looks */
#define RACERS_PATIENCE 32      /* how often others may step back before this process is refused */

static struct {
    pthread_mutex_t mutex;
    _Atomic int is_joined;
    int is_alone;               /* the file cannot be shared */
    shared_t shared;
    region_file_t *file;
    region_slot_t *own;
} region = {.mutex = PTHREAD_MUTEX_INITIALIZER, .shared = {.descriptor = -1}};

/* ---- the lock ------------------------------------------------------------------------------------------------- */

int region_lock(void) {
    pthread_mutex_lock(&region.mutex);
    if (region.is_alone || shared_lock(&region.shared, LOCK_BYTE) == 0)
        return 0;
    pthread_mutex_unlock(&region.mutex);
    return -1;
}

void region_unlock(void) {
    if (!region.is_alone)
        shared_unlock(&region.shared, LOCK_BYTE);
    pthread_mutex_unlock(&region.mutex);
}

/* ---- slots ---------------------------------------------------------------------------------------------------- */

static void empty(region_slot_t *slot) {
    for (int card = 0; card < MOST_CARDS; card++)
        atomic_store(&slot->bytes[card], 0);
    atomic_store(&slot->host_pid, 0);
    atomic_store(&slot->pid, 0);
}

/* Process numbers come again, and mean nothing in another namespace. But each process holds the lock on its own byte,
   and the kernel lets go of it at any death, and at an exec. */
static int is_left_behind(int slot) {
    const region_slot_t *one = &region.file->slots[slot];
    return one != region.own && atomic_load(&one->pid) != 0 && shared_is_free(&region.shared, SLOT_BYTE(slot));
}

/* With the region locked, as whoever takes a slot has it. */
static void bury_the_dead(void) {
    int used = (int)atomic_load(&region.file->slots_used);
    for (int slot = 0; slot < used; slot++)
        if (is_left_behind(slot))
            empty(&region.file->slots[slot]);
    while (used > 0 && atomic_load(&region.file->slots[used - 1].pid) == 0)
        used--;
    atomic_store(&region.file->slots_used, (uint32_t)used);
}

static int is_to_be_had(int slot) {
    if (atomic_load(&region.file->slots[slot].pid) != 0)
        return 0;
    return region.is_alone || shared_keep(&region.shared, SLOT_BYTE(slot)) == 0;
}

static int take_slot(void) {
    for (int slot = 0; slot < REGION_SLOTS; slot++) {
        region_slot_t *one = &region.file->slots[slot];
        if (!is_to_be_had(slot))
            continue;
        empty(one);
        if (atomic_load(&region.file->slots_used) <= (uint32_t)slot)
            atomic_store(&region.file->slots_used, (uint32_t)slot + 1);
        atomic_store(&one->pid, (uint64_t)getpid());
        region.own = one;
        return 0;
    }
    return -1;
}

/* ---- joining -------------------------------------------------------------------------------------------------- */

/* Where HAMi would share its file, if the node says so; by the tile's name otherwise, because containers may have one
   /tmp between them. The version is in the name, so that two releases in one container do not meet. */
static void write_path(char *path) {
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
    if (region.file->magic == 0) {
        region.file->version = REGION_VERSION;
        region.file->magic = REGION_MAGIC;
    }
    if (region.file->magic != REGION_MAGIC || region.file->version != REGION_VERSION) {
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
    region.file = &alone;
    take_slot();
}

/* A child has neither the memory nor the contexts of its parent, and no use of its slot. */
static void forget_in_child(void) {
    pthread_mutex_init(&region.mutex, NULL);
    shared_close(&region.shared);
    region.is_alone = 0;
    atomic_store(&region.is_joined, 0);
    blocks_forget_all();
    forget_small_blocks();
    forget_pools();
    forget_contexts();
    forget_devices();
    forget_limits();
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
        const char *problem = shared_open(&region.shared, path, sizeof(region_file_t), (void **)&region.file);
        problem = problem ? problem : enter_file();
        if (problem)
            count_alone(path, problem);
        atomic_store_explicit(&region.is_joined, 1, memory_order_release);
    }
    pthread_mutex_unlock(&region.mutex);
}

/* ---- figures -------------------------------------------------------------------------------------------------- */

int region_card(const char *uuid) {
    region_join();
    int found = NO_CARD, is_locked = region_lock() == 0;
    for (int card = 0; is_locked && card < MOST_CARDS && found == NO_CARD; card++) {
        char *known = region.file->cards[card].uuid;
        if (*known == '\0')
            snprintf(known, UUID_LENGTH, "%s", uuid);
        if (strcmp(known, uuid) == 0)
            found = card;
    }
    if (is_locked)
        region_unlock();
    return found;
}

const char *region_uuid(int card) {
    return region.file->cards[card].uuid;
}

static uint64_t sum_of(int card) {
    uint64_t sum = 0;
    uint32_t used = atomic_load(&region.file->slots_used);
    for (uint32_t slot = 0; slot < used; slot++)
        sum += atomic_load(&region.file->slots[slot].bytes[card]);
    return sum;
}

/* Others that announced at the same moment count too, so both may be over the cap and both step back. */
static int announce(int card, uint64_t bytes, uint64_t cap) {
    atomic_fetch_add(&region.own->bytes[card], bytes);
    if (sum_of(card) <= cap)
        return 0;
    atomic_fetch_sub(&region.own->bytes[card], bytes);
    return -1;
}

int region_reserve(int card, uint64_t bytes, uint64_t cap) {
    if (bytes > cap)
        return -1;
    if (announce(card, bytes, cap) == 0)
        return 0;
    if (region_lock())
        return -1;
    bury_the_dead();
    int result = -1;
    for (int turn = 0; result == -1 && turn < RACERS_PATIENCE; turn++) {
        result = announce(card, bytes, cap);
        if (result == -1)
            sched_yield();
    }
    region_unlock();
    return result;
}

void region_add(int card, uint64_t bytes) {
    atomic_fetch_add(&region.own->bytes[card], bytes);
}

void region_give_back(int card, uint64_t bytes) {
    atomic_fetch_sub(&region.own->bytes[card], bytes);
}

uint64_t region_used(int card) {
    static _Atomic uint64_t looked_ms;
    uint64_t now_ms = coarse_ms(), looked = atomic_load(&looked_ms);
    int is_due = now_ms - looked >= BURIAL_PERIOD_MS && atomic_compare_exchange_strong(&looked_ms, &looked, now_ms);
    if (is_due && atomic_load(&region.file->slots_used) > 1 && region_lock() == 0) {
        bury_the_dead();
        region_unlock();
    }
    return sum_of(card);
}

int region_is_over(int card, uint64_t cap) {
    return sum_of(card) > cap;
}

uint64_t region_context_bytes(int card) {
    return atomic_load(&region.file->cards[card].context_bytes);
}

void region_learn_context_bytes(int card, uint64_t bytes) {
    atomic_store(&region.file->cards[card].context_bytes, bytes);
}

int region_identity(struct stat *identity) {
    *identity = region.shared.identity;
    return region.is_alone ? -1 : 0;
}

region_card_t *region_figures(int card) {
    return &region.file->cards[card];
}
