/* What the processes of the container hold, by the slots of the region (region.c).

   Whoever takes memory adds to its own slot first and sums up all slots then, so two that race never both get the last
   bytes. What a process holds may be watched while it is compared with what the driver says of it (upkeep.c). */
#define _GNU_SOURCE
#include "tessera.h"

#include <sched.h>

#define BURIAL_PERIOD_MS 100    /* for those who only look; whoever is refused always looks */
#define RACERS_PATIENCE 32      /* how often others may step back before this process is refused */

static struct {
    _Atomic int is_on;
    _Atomic uint32_t changes;
    _Atomic uint64_t most;
} watches[MOST_CARDS];

static _Atomic uint64_t *own_bytes(int card) {
    return card < REGION_CARDS ? &region_here.own->bytes[card] : &region_here.bytes_beyond[card - REGION_CARDS];
}

static uint64_t sum_of(int card) {
    uint64_t sum = 0;
    uint32_t used = region_slot_count();
    if (card >= REGION_CARDS)
        return atomic_load(own_bytes(card));
    for (uint32_t slot = 0; slot < used; slot++)
        sum += atomic_load(&region_here.file->slots[slot].bytes[card]);
    return sum + atomic_load(&region_here.file->cards[card].unclaimed_bytes);
}

/* ---- taking and giving back ----------------------------------------------------------------------------------- */

static void note(int card, uint64_t now) {
    uint64_t most = atomic_load(&watches[card].most);
    while (most < now && !atomic_compare_exchange_weak(&watches[card].most, &most, now))
        continue;
    atomic_fetch_add(&watches[card].changes, 1);
}

static void change(int card, uint64_t bytes) {
    uint64_t now = atomic_fetch_add(own_bytes(card), bytes) + bytes;
    if (atomic_load_explicit(&watches[card].is_on, memory_order_relaxed))
        note(card, now);
}

void region_add(int card, uint64_t bytes) {
    change(card, bytes);
}

void region_give_back(int card, uint64_t bytes) {
    change(card, -bytes);
}

/* Others that announced at the same moment count too, so both may be over the cap and both step back. */
static int announce(int card, uint64_t bytes, uint64_t cap, uint64_t *left) {
    _Atomic uint64_t *announced = &region_here.own->announced_bytes;
    atomic_fetch_add(announced, bytes);
    region_add(card, bytes);
    uint64_t sum = sum_of(card);
    int is_within = sum <= cap;
    if (is_within)
        *left = cap - sum;
    else
        region_give_back(card, bytes);
    atomic_fetch_sub(announced, bytes);
    return is_within ? 0 : -1;
}

/* Whether it would, if everybody who has announced something now stepped back. */
static int may_fit(int card, uint64_t bytes, uint64_t cap) {
    uint64_t announced = 0, sum;
    uint32_t used = region_slot_count();
    for (uint32_t slot = 0; slot < used && card < REGION_CARDS; slot++)
        announced += atomic_load(&region_here.file->slots[slot].announced_bytes);
    sum = sum_of(card);
    return sum <= announced || sum - announced <= cap - bytes;
}

/* What nobody gives back by itself: the dead's, and what is noted for others who may be gone. */
static int has_leftovers(int card) {
    if (card >= REGION_CARDS)
        return 0;
    return region_has_dead(card) || atomic_load(&region_here.file->cards[card].unclaimed_bytes) != 0;
}

/* The lock is needed for what others leave or hold for a moment alone. Whoever is refused for what the living hold asks
   nobody for it, and waits for nobody who was stopped with it. */
int region_reserve(int card, uint64_t bytes, uint64_t cap, uint64_t *left) {
    if (bytes > cap)
        return -1;
    if (announce(card, bytes, cap, left) == 0)
        return 0;
    if ((!may_fit(card, bytes, cap) && !has_leftovers(card)) || region_lock())
        return -1;
    bury_the_dead();
    int result = -1;
    for (int turn = 0; result == -1 && turn < RACERS_PATIENCE; turn++) {
        result = announce(card, bytes, cap, left);
        if (result == -1 && !may_fit(card, bytes, cap))
            break;
        if (result == -1)
            sched_yield();
    }
    region_unlock();
    return result;
}

/* ---- looking -------------------------------------------------------------------------------------------------- */

/* Now and then, because that takes the lock. */
static void bury_if_due(void) {
    static _Atomic uint64_t looked_ms;
    uint64_t now_ms = coarse_ms(), looked = atomic_load(&looked_ms);
    int is_due = now_ms - looked >= BURIAL_PERIOD_MS && atomic_compare_exchange_strong(&looked_ms, &looked, now_ms);
    if (is_due && atomic_load(&region_here.file->slots_used) > 1 && region_try_lock() == 0) {
        bury_the_dead();
        region_unlock();
    }
}

uint64_t region_used(int card) {
    bury_if_due();
    return sum_of(card);
}

/* Nobody is refused for what the dead hold. */
int region_is_over(int card, uint64_t cap) {
    if (sum_of(card) > cap && has_leftovers(card) && region_lock() == 0) {
        bury_the_dead();
        region_unlock();
    }
    return sum_of(card) > cap;
}

static uint64_t held_in(const region_slot_t *slot, int card) {
    return card == NO_CARD || card >= REGION_CARDS ? 0 : atomic_load(&slot->bytes[card]);
}

int region_holders(int card, int beside, holder_t *holders, int room) {
    int count = 0;
    bury_if_due();
    for (int slot = 0; slot < (int)region_slot_count(); slot++) {
        const region_slot_t *one = &region_here.file->slots[slot];
        uint64_t bytes = held_in(one, card) + held_in(one, beside);
        holder_t holder = {(uint32_t)one->pid, (uint32_t)one->host_pid, bytes};
        if (holder.pid == 0 || holder.bytes == 0)
            continue;
        if (count < room)
            holders[count] = holder;
        count++;
    }
    return count;
}

uint64_t region_context_bytes(int card) {
    return atomic_load(&region_figures(card)->context_bytes);
}

void region_learn_context_bytes(int card, uint64_t bytes) {
    atomic_store(&region_figures(card)->context_bytes, bytes);
}

/* ---- watching ------------------------------------------------------------------------------------------------- */

void region_watch(int card) {
    atomic_store(&watches[card].changes, 0);
    atomic_store(&watches[card].most, 0);
    atomic_store(&watches[card].is_on, 1);
    note(card, atomic_load(own_bytes(card)));
}

watched_t region_stop_watching(int card) {
    uint64_t now = atomic_load(own_bytes(card));
    note(card, now);
    atomic_store(&watches[card].is_on, 0);
    return (watched_t){now, atomic_load(&watches[card].most), atomic_load(&watches[card].changes) > 2};
}
