/* What the processes of the container hold, by the slots of the region (region.c).

   Whoever wants memory asks first, in its own slot, and sums up then what all hold and ask for. So of two that race
   never both get the last bytes. Nobody asks for what does not fit beside what is held, and nobody is refused for what
   others only ask for: a request that is far too large takes nothing from one that fits.

   What a process holds may be watched while it is compared with what the driver says of it (upkeep.c). */
#define _GNU_SOURCE
#include "tessera.h"

#include <sched.h>
#include <time.h>

#define BURIAL_PERIOD_MS 100    /* for those who only look; whoever is refused always looks */
#define READINGS 64             /* of sums that others change meanwhile */
#define RACING_TURNS 32         /* for others who ask at the same moment, and are done in less than a microsecond */
#define PATIENT_TURNS 64        /* of a millisecond, for those who were put aside in the middle of it */

static struct {
    _Atomic int is_on;
    _Atomic uint32_t changes;
    _Atomic uint64_t most;
} watches[MOST_CARDS];

static region_part_t *own_part(int card) {
    return card < REGION_CARDS ? &region_here.own->parts[card] : &region_here.parts_beyond[card - REGION_CARDS];
}

typedef struct {
    uint64_t held, asked;
} sum_t;

/* In this order, because a request that is granted is held first and then no longer asked for. */
static void count_in(sum_t *sum, const region_part_t *part) {
    sum->asked += atomic_load(&part->asked);
    sum->held += atomic_load(&part->bytes);
}

static sum_t sum_of(int card) {
    sum_t sum = {0};
    uint32_t used = region_slot_count();
    if (card >= REGION_CARDS) {
        count_in(&sum, own_part(card));
        return sum;
    }
    for (uint32_t slot = 0; slot < used; slot++)
        count_in(&sum, &region_here.file->slots[slot].parts[card]);
    sum.held += atomic_load(&region_here.file->cards[card].unclaimed_bytes);
    return sum;
}

/* ---- taking and giving back ----------------------------------------------------------------------------------- */

static void note(int card, uint64_t now) {
    uint64_t most = atomic_load(&watches[card].most);
    while (most < now && !atomic_compare_exchange_weak(&watches[card].most, &most, now))
        continue;
    atomic_fetch_add(&watches[card].changes, 1);
}

static void change(int card, uint64_t bytes) {
    uint64_t now = atomic_fetch_add(&own_part(card)->bytes, bytes) + bytes;
    if (atomic_load_explicit(&watches[card].is_on, memory_order_relaxed))
        note(card, now);
}

void region_add(int card, uint64_t bytes) {
    atomic_fetch_add(&region_here.own->grants, 1);
    change(card, bytes);
}

void region_give_back(int card, uint64_t bytes) {
    change(card, -bytes);
}

/* Others who ask at the same moment count too, so both may be too many and both step back. */
static int ask(int card, uint64_t bytes, uint64_t cap, uint64_t *left) {
    _Atomic uint64_t *asked = &own_part(card)->asked;
    atomic_fetch_add(asked, bytes);
    sum_t sum = sum_of(card);
    int is_granted = sum.held <= cap && sum.asked <= cap - sum.held;
    if (is_granted) {
        *left = cap - sum.held - sum.asked;
        region_add(card, bytes);
    }
    atomic_fetch_sub(asked, bytes);
    return is_granted ? 0 : -1;
}

static uint64_t count_grants(void) {
    uint64_t grants = 0;
    uint32_t used = region_slot_count();
    for (uint32_t slot = 0; slot < used; slot++)
        grants += atomic_load(&region_here.file->slots[slot].grants);
    return grants;
}

/* Slots are read one after the other, so what one gave back and another got meanwhile may have been counted twice. A sum
   that is too large is believed when nobody got anything while it was made. */
static int fits(int card, uint64_t bytes, uint64_t cap) {
    for (int reading = 0; reading < READINGS; reading++) {
        uint64_t grants = count_grants();
        if (sum_of(card).held <= cap - bytes)
            return 1;
        if (count_grants() == grants)
            return 0;
    }
    return 0;
}

static void give_way(int turn) {
    struct timespec pause = {.tv_nsec = 1000000};
    if (turn < RACING_TURNS)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

/* With the lock, so all others who could not decide a race wait, and one of them goes on. */
static int ask_until_decided(int card, uint64_t bytes, uint64_t cap, uint64_t *left) {
    for (int turn = 0; turn < RACING_TURNS + PATIENT_TURNS && fits(card, bytes, cap); turn++) {
        if (ask(card, bytes, cap, left) == 0)
            return 0;
        give_way(turn);
    }
    return -1;
}

/* What nobody gives back by itself: the dead's, and what is noted for others who may be gone. */
static int has_leftovers(int card) {
    if (card >= REGION_CARDS)
        return 0;
    return region_has_dead(card) || atomic_load(&region_here.file->cards[card].unclaimed_bytes) != 0;
}

/* Whoever is refused for what the living hold needs no lock, and waits for nobody who was stopped with it. */
int region_reserve(int card, uint64_t bytes, uint64_t cap, uint64_t *left) {
    if (bytes > cap)
        return -1;
    int is_fitting = fits(card, bytes, cap);
    if (is_fitting && ask(card, bytes, cap, left) == 0)
        return 0;
    if ((!is_fitting && !has_leftovers(card)) || region_lock())
        return -1;
    bury_the_dead();
    int result = ask_until_decided(card, bytes, cap, left);
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
    return sum_of(card).held;
}

/* Nobody is refused for what the dead hold. */
int region_is_over(int card, uint64_t cap) {
    if (sum_of(card).held > cap && has_leftovers(card) && region_lock() == 0) {
        bury_the_dead();
        region_unlock();
    }
    return sum_of(card).held > cap;
}

static uint64_t held_in(const region_slot_t *slot, int card) {
    return card == NO_CARD || card >= REGION_CARDS ? 0 : atomic_load(&slot->parts[card].bytes);
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
    note(card, atomic_load(&own_part(card)->bytes));
}

watched_t region_stop_watching(int card) {
    uint64_t now = atomic_load(&own_part(card)->bytes);
    note(card, now);
    atomic_store(&watches[card].is_on, 0);
    return (watched_t){now, atomic_load(&watches[card].most), atomic_load(&watches[card].changes) > 2};
}
