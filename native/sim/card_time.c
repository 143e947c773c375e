#define _GNU_SOURCE
#include "card_time.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME "time"
#define STRETCHES 128
#define WINDOW_NS 50000000
#define WINDOWS 32
#define WORD_BITS 64
#define FREE 0
#define HOLD(slot) ((uint32_t)(slot) + 1)
#define SPINS 200
#define NAP_NS 20000
#define NAPS_BEFORE_DOUBT 100

/* A time in which a card worked for one process without a break, and the position at its beginning. */
typedef struct {
    int64_t begin, end;
    uint64_t first;
} stretch_t;

/* Which window since the epoch of the clock, and how much of it was work. */
typedef struct {
    int64_t window;
    int64_t busy_ns;
} usage_t;

typedef struct {
    _Atomic uint64_t asked, done;
    uint64_t stretch_count;
    stretch_t stretches[STRETCHES];
    usage_t usage[WINDOWS];
} share_t;

/* One card. All zero is a card that has never worked. Changed only by who holds `lock`; who dies with it leaves at
   worst one stretch that is counted twice or not at all. */
typedef struct {
    _Atomic uint32_t lock;      /* FREE, or HOLD of a slot */
    int32_t has_holder, holder; /* the slot whose work is on the card, or was at last */
    int64_t time;               /* up to which everything is worked out */
    int64_t turn_end;
    uint64_t waiting[MACHINE_MOST_PROCESSES / WORD_BITS];       /* one bit for each slot that has work */
    usage_t usage[WINDOWS];
    share_t shares[MACHINE_MOST_PROCESSES];
} card_time_t;

static struct {
    pthread_mutex_t mutex;
    card_time_t *cards;
    int count;
} joined = {.mutex = PTHREAD_MUTEX_INITIALIZER};

int64_t time_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* ---- the lock ------------------------------------------------------------------------------------------------- */

/* Held for a moment only. Who waits for long asks whether the holder still lives, by the lock on its slot. */
static void lock(card_time_t *card) {
    for (int round = 1;; round++) {
        uint32_t holder = FREE;
        if (atomic_compare_exchange_weak(&card->lock, &holder, HOLD(machine_slot())))
            return;
        if (round < SPINS)
            continue;
        nanosleep(&(struct timespec){0, NAP_NS}, NULL);
        if (round % NAPS_BEFORE_DOUBT == 0 && holder != FREE && !machine_slot_lives((int)holder - 1) &&
            atomic_compare_exchange_strong(&card->lock, &holder, HOLD(machine_slot())))
            return;
    }
}

static void unlock(card_time_t *card) {
    atomic_store(&card->lock, FREE);
}

/* ---- joining -------------------------------------------------------------------------------------------------- */

static void forget_in_child(void) {
    if (joined.cards)
        munmap(joined.cards, (size_t)joined.count * sizeof(card_time_t));
    joined.cards = NULL;
    pthread_mutex_init(&joined.mutex, NULL);
}

static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;

static void install_fork_handler(void) {
    pthread_atfork(NULL, NULL, forget_in_child);
}

static card_time_t *map_cards(int count) {
    const off_t size = count * (off_t)sizeof(card_time_t);
    int file = machine_open_shared(FILE_NAME);
    struct stat now;
    if (file == -1)
        return NULL;
    void *mapping = MAP_FAILED;
    if (fstat(file, &now) == 0 && (now.st_size >= size || ftruncate(file, size) == 0))
        mapping = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return mapping == MAP_FAILED ? NULL : mapping;
}

static void set_waiting(card_time_t *card, int slot, int is_waiting) {
    uint64_t bit = (uint64_t)1 << slot % WORD_BITS;
    if (is_waiting)
        card->waiting[slot / WORD_BITS] |= bit;
    else
        card->waiting[slot / WORD_BITS] &= ~bit;
}

static void drop(card_time_t *card, int slot) {
    card->shares[slot].done = card->shares[slot].asked;
    set_waiting(card, slot, 0);
}

/* A dead process may have held the lock under the number of this one. */
static void clear_slot(card_time_t *card) {
    uint32_t former = HOLD(machine_slot());
    atomic_compare_exchange_strong(&card->lock, &former, FREE);
    lock(card);
    drop(card, machine_slot());
    memset(card->shares[machine_slot()].usage, 0, sizeof card->shares->usage);
    unlock(card);
}

int time_join(void) {
    pthread_once(&fork_handler_once, install_fork_handler);
    pthread_mutex_lock(&joined.mutex);
    if (joined.cards == NULL) {
        joined.count = machine_all_cards();
        joined.cards = machine_slot() == -1 ? NULL : map_cards(joined.count);
        for (int card = 0; joined.cards && card < joined.count; card++)
            clear_slot(&joined.cards[card]);
    }
    pthread_mutex_unlock(&joined.mutex);
    return joined.cards ? 0 : -1;
}

/* ---- what a card does ----------------------------------------------------------------------------------------- */

static void count_usage(usage_t *usage, int64_t begin, int64_t end) {
    for (int64_t window = begin / WINDOW_NS; begin < end; window++) {
        int64_t until = (window + 1) * WINDOW_NS < end ? (window + 1) * WINDOW_NS : end;
        usage_t *one = &usage[window % WINDOWS];
        if (one->window != window)
            *one = (usage_t){window, 0};
        one->busy_ns += until - begin;
        begin = until;
    }
}

static void work(card_time_t *card, int slot, int64_t ns) {
    share_t *share = &card->shares[slot];
    stretch_t *last = &share->stretches[(share->stretch_count - 1) % STRETCHES];
    int64_t end = card->time + ns;
    int goes_on = share->stretch_count > 0 && last->end == card->time &&
                  last->first + (uint64_t)(last->end - last->begin) == share->done;
    if (goes_on) {
        last->end = end;
    } else {
        share->stretches[share->stretch_count % STRETCHES] = (stretch_t){card->time, end, share->done};
        share->stretch_count++;
    }
    count_usage(share->usage, card->time, end);
    count_usage(card->usage, card->time, end);
    share->done += (uint64_t)ns;
    card->time = end;
    set_waiting(card, slot, share->done < share->asked);
}

/* The next one after the slot that has work, the slot itself at last; NO_SLOT where nobody has. */
static int next_waiting(const card_time_t *card, int after) {
    const int words = MACHINE_MOST_PROCESSES / WORD_BITS;
    int first = (after + 1) % MACHINE_MOST_PROCESSES;
    for (int step = 0; step <= words; step++) {
        int word = (first / WORD_BITS + step) % words;
        uint64_t bits = card->waiting[word];
        if (step == 0)
            bits &= ~(uint64_t)0 << first % WORD_BITS;
        if (bits)
            return word * WORD_BITS + __builtin_ctzll(bits);
    }
    return NO_SLOT;
}

/* As next_waiting, of those who live. The work of the dead is dropped. */
static int next_living(card_time_t *card, int after) {
    int slot;
    while ((slot = next_waiting(card, after)) != NO_SLOT && !machine_slot_lives(slot))
        drop(card, slot);
    return slot;
}

/* It begins after the change from whoever was there before. */
static void begin_turn(card_time_t *card, int slot) {
    if (card->has_holder && card->holder != slot)
        card->time += CARD_SWITCH_NS;
    card->has_holder = 1;
    card->holder = slot;
    card->turn_end = card->time + CARD_TURN_NS;
}

static void advance(card_time_t *card, int64_t until) {
    while (card->time < until) {
        const share_t *share = &card->shares[card->holder];
        int64_t rest = (int64_t)(share->asked - share->done);
        if (rest == 0 || card->time >= card->turn_end) {
            int next = next_living(card, card->holder);
            if (next == NO_SLOT)
                card->time = until;
            else
                begin_turn(card, next);
            continue;
        }
        int64_t length = until - card->time;
        if (length > rest)
            length = rest;
        if (length > card->turn_end - card->time)
            length = card->turn_end - card->time;
        work(card, card->holder, length);
    }
}

/* ---- what a process asks -------------------------------------------------------------------------------------- */

uint64_t time_ask(const card_t *card, uint64_t ns, int64_t at) {
    card_time_t *times = &joined.cards[card->index];
    share_t *share = &times->shares[machine_slot()];
    lock(times);
    advance(times, at);
    uint64_t position = share->asked += ns;
    set_waiting(times, machine_slot(), share->asked != share->done);
    unlock(times);
    return position;
}

uint64_t time_settle(const card_t *card, int64_t now) {
    card_time_t *times = &joined.cards[card->index];
    lock(times);
    advance(times, now);
    uint64_t done = times->shares[machine_slot()].done;
    unlock(times);
    return done;
}

int64_t time_of(const card_t *card, uint64_t position) {
    card_time_t *times = &joined.cards[card->index];
    const share_t *share = &times->shares[machine_slot()];
    int64_t found = 0;
    lock(times);
    uint64_t count = share->stretch_count, known = count < STRETCHES ? count : STRETCHES;
    for (uint64_t back = 1; back <= known; back++) {
        const stretch_t *stretch = &share->stretches[(count - back) % STRETCHES];
        uint64_t length = (uint64_t)(stretch->end - stretch->begin);
        if (position > stretch->first + length)
            break;
        found = position > stretch->first ? stretch->begin + (int64_t)(position - stretch->first) : stretch->begin;
        if (position > stretch->first)
            break;
    }
    unlock(times);
    return found;
}

void time_drop(const card_t *card) {
    card_time_t *times = &joined.cards[card->index];
    lock(times);
    drop(times, machine_slot());
    unlock(times);
}

int time_busy(const card_t *card, int slot, int64_t now, int64_t window_ns) {
    card_time_t *times = &joined.cards[card->index];
    const usage_t *usage = slot == NO_SLOT ? times->usage : times->shares[slot].usage;
    int64_t last = now / WINDOW_NS - 1, count = window_ns / WINDOW_NS, busy_ns = 0;
    lock(times);
    advance(times, now);
    for (int64_t window = last; window > last - count; window--)
        busy_ns += usage[window % WINDOWS].window == window ? usage[window % WINDOWS].busy_ns : 0;
    unlock(times);
    return (int)(busy_ns * 1000 / (count * WINDOW_NS));
}
