/* What the driver takes of a card for itself: code of modules and libraries, stacks of kernels, and whatever a context
   takes beyond what contexts are charged with. It says to nobody how much that is, and takes some of it at a kernel's
   first launch. So now and then what NVML says of this process is compared with what the process was charged with, and
   the difference is charged too.

   A process that has code keeps a margin for what it may still load. Where NVML does not know the process, the margin
   is all that can be charged, and is taken on the safe side. */
#define _GNU_SOURCE
#include "memory.h"

#include <pthread.h>
#include <string.h>

#define PERIOD_MS 100
#define NEAR_PERIOD_MS 10       /* with little left of the limit */
#define NEAR_SHARE 16
#define REST_PER_LOOK 20        /* so many times as long as a look took there is none, because NVML may be slow */
#define NEAR_REST_PER_LOOK 2
#define LONGEST_REST_MS 200
#define MOST_MARGIN ((uint64_t)128 << 20)       /* a process of torch on an H200 takes 92 MiB after its context */
#define MARGIN_SHARE 64
#define BLIND_MARGIN_SHARE 8

typedef struct {
    _Atomic uint64_t looked_ms, took_ms, left;
    _Atomic int has_code, is_stale;
    _Atomic int contexts;
    uint64_t charged;           /* beyond contexts, with the margin */
    uint64_t promised;          /* to the heap of kernels, which the driver takes when one of them needs it */
    _Atomic uint64_t lower;     /* what the last look would have lowered it to, and one; 0: it would not have */
    _Atomic int is_vague;       /* memory was charged that may not be on the card */
    _Atomic int has_remains;    /* more may be charged than is there, and nobody has seen it yet */
} upkeep_t;

static upkeep_t upkeeps[MOST_CARDS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void forget_upkeep(void) {
    pthread_mutex_init(&mutex, NULL);
    memset(upkeeps, 0, sizeof upkeeps);
}

void upkeep_take_over(int card, uint64_t bytes) {
    pthread_mutex_lock(&mutex);
    upkeeps[card].charged += bytes;
    upkeeps[card].lower = 0;
    upkeeps[card].has_remains |= bytes > 0;
    pthread_mutex_unlock(&mutex);
}

void upkeep_doubt(int card) {
    atomic_store(&upkeeps[card].is_vague, 1);
}

/* ---- how much ------------------------------------------------------------------------------------------------- */

static uint64_t least(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

static uint64_t margin(uint64_t limit, uint64_t share) {
    return least(MOST_MARGIN, limit / share) / PAGE * PAGE;
}

/* What is there, with a quarter of the margin beyond it, or all that code and the heap may come to. */
static uint64_t with_margin(const upkeep_t *upkeep, uint64_t taken, uint64_t limit) {
    uint64_t whole = atomic_load(&upkeep->has_code) ? margin(limit, MARGIN_SHARE) : 0;
    uint64_t there = taken + whole / 4 / PAGE * PAGE, to_come = whole + upkeep->promised;
    return there > to_come ? there : to_come;
}

/* From what NVML says and what the process was charged with meanwhile. The most of that counts, because a charge comes
   before its memory and goes after it: so never too much comes out. */
static uint64_t taken_of(const upkeep_t *upkeep, uint64_t used, const watched_t *charged) {
    uint64_t known = charged->most - upkeep->charged;
    return used > known ? round_up(used - known, PAGE) : 0;
}

/* ---- charging ------------------------------------------------------------------------------------------------- */

/* With the mutex, as the next ones. */
static void charge(int card, uint64_t bytes) {
    upkeep_t *upkeep = &upkeeps[card];
    if (bytes > upkeep->charged)
        region_add(card, bytes - upkeep->charged);
    else
        region_give_back(card, upkeep->charged - bytes);
    upkeep->has_remains &= bytes >= upkeep->charged;
    upkeep->charged = bytes;
    upkeep->lower = 0;
}

/* Down only when two looks in a row agree and neither saw anything change: a free that is under way, memory that is
   not on the card would else be taken for the driver's. */
static void lower(int card, uint64_t bytes, int is_certain) {
    upkeep_t *upkeep = &upkeeps[card];
    uint64_t before = upkeep->lower;
    upkeep->lower = is_certain ? bytes + 1 : 0;
    if (is_certain && before)
        charge(card, before - 1 > bytes ? before - 1 : bytes);
}

static void compare(int card) {
    upkeep_t *upkeep = &upkeeps[card];
    uint64_t used = 0, limit = limit_of(card);
    settle_pools(card);
    region_watch(card);
    int is_known = measure_own(card, &used) == 0;
    settle_pools(card);
    watched_t charged = region_stop_watching(card);
    if (!is_known) {
        uint64_t blind = margin(limit, BLIND_MARGIN_SHARE) + upkeep->promised;
        if (upkeep->charged < blind)
            charge(card, blind);
        return;
    }
    uint64_t taken = taken_of(upkeep, used, &charged);
    if (taken)
        atomic_store(&upkeep->has_code, 1);
    uint64_t wish = with_margin(upkeep, taken, limit);
    if (wish > upkeep->charged)
        charge(card, wish);
    else if (wish < upkeep->charged)
        lower(card, wish, !charged.has_changed && !upkeep->is_vague);
    else
        upkeep->lower = 0;
}

/* Where another thread does it just now, this one goes on. */
static void look(int card) {
    upkeep_t *upkeep = &upkeeps[card];
    if (limit_of(card) == NO_LIMIT || pthread_mutex_trylock(&mutex))
        return;
    uint64_t begin_ms = coarse_ms();
    atomic_store(&upkeep->is_stale, 0);
    if (upkeep->contexts)
        compare(card);
    else if (atomic_load(&region_figures(card)->unclaimed_bytes))
        measure_others(card);
    uint64_t end_ms = coarse_ms();
    atomic_store(&upkeep->looked_ms, end_ms);
    atomic_store(&upkeep->took_ms, end_ms - begin_ms);
    pthread_mutex_unlock(&mutex);
}

static int is_older(int card, uint64_t age_ms, uint64_t rest_per_look) {
    const upkeep_t *upkeep = &upkeeps[card];
    uint64_t passed_ms = coarse_ms() - atomic_load_explicit(&upkeep->looked_ms, memory_order_relaxed);
    uint64_t rest_ms = atomic_load_explicit(&upkeep->took_ms, memory_order_relaxed) * rest_per_look;
    if (atomic_load_explicit(&upkeep->is_stale, memory_order_relaxed))
        return 1;
    return passed_ms >= age_ms && passed_ms >= least(rest_ms, LONGEST_REST_MS);
}

static int is_old_near_limit(int card) {
    return is_older(card, NEAR_PERIOD_MS, NEAR_REST_PER_LOOK);
}

void upkeep_keep_up(int card, uint64_t limit) {
    uint64_t left = atomic_load_explicit(&upkeeps[card].left, memory_order_relaxed);
    if (limit == NO_LIMIT)
        return;
    if (left < limit / NEAR_SHARE ? is_old_near_limit(card) : is_older(card, PERIOD_MS, REST_PER_LOOK))
        look(card);
}

void upkeep_expect_growth(int card) {
    atomic_store(&upkeeps[card].is_stale, 1);
}

void upkeep_note_left(int card, uint64_t left) {
    atomic_store_explicit(&upkeeps[card].left, left, memory_order_relaxed);
}

/* Also where there may be less than is charged. It takes two looks to believe that. */
int upkeep_look_again(int card) {
    upkeep_t *upkeep = &upkeeps[card];
    int has_remains = upkeep->has_remains;
    if (!is_old_near_limit(card) && !has_remains && upkeep->lower == 0)
        return 0;
    look(card);
    if (has_remains)
        look(card);
    return 1;
}

/* It may be charged here or as what nobody claims, and stay so for as long as nobody looks. */
void upkeep_end_import(int card) {
    upkeep_t *upkeep = &upkeeps[card];
    if (upkeep->charged <= margin(limit_of(card), MARGIN_SHARE) + upkeep->promised &&
        atomic_load(&region_figures(card)->unclaimed_bytes) == 0)
        return;
    atomic_store(&upkeep->has_remains, 1);
    if (is_old_near_limit(card))
        upkeep_look_again(card);
    else
        upkeep_expect_growth(card);
}

/* ---- contexts and code ---------------------------------------------------------------------------------------- */

int upkeep_has_context(int card) {
    return atomic_load_explicit(&upkeeps[card].contexts, memory_order_acquire) != 0;
}

void upkeep_begin(int card) {
    pthread_mutex_lock(&mutex);
    upkeeps[card].contexts++;
    pthread_mutex_unlock(&mutex);
    look(card);
}

void upkeep_end(int card) {
    upkeep_t *upkeep = &upkeeps[card];
    pthread_mutex_lock(&mutex);
    if (--upkeep->contexts == 0) {
        charge(card, 0);
        upkeep->promised = 0;
        atomic_store(&upkeep->has_code, 0);
    }
    pthread_mutex_unlock(&mutex);
}

/* With the mutex. Charge so much, if there is room. */
static CUresult raise_to(int card, uint64_t bytes) {
    upkeep_t *upkeep = &upkeeps[card];
    uint64_t more = bytes > upkeep->charged ? bytes - upkeep->charged : 0;
    CUresult result = reserve_pages(card, more);
    if (result == CUDA_SUCCESS && more) {
        upkeep->charged += more;
        upkeep->lower = 0;
    }
    return result;
}

CUresult upkeep_begin_code(int card) {
    upkeep_t *upkeep = &upkeeps[card];
    uint64_t limit = limit_of(card);
    if (limit == NO_LIMIT || atomic_load(&upkeep->has_code))
        return CUDA_SUCCESS;
    pthread_mutex_lock(&mutex);
    CUresult result = CUDA_SUCCESS;
    if (!atomic_load(&upkeep->has_code))
        result = raise_to(card, margin(limit, MARGIN_SHARE) + upkeep->promised);
    if (result == CUDA_SUCCESS)
        atomic_store(&upkeep->has_code, 1);
    pthread_mutex_unlock(&mutex);
    return result;
}

CUresult upkeep_promise(int card, uint64_t bytes, uint64_t *before) {
    upkeep_t *upkeep = &upkeeps[card];
    uint64_t limit = limit_of(card), wish = round_up(bytes, PAGE);
    pthread_mutex_lock(&mutex);
    uint64_t whole = atomic_load(&upkeep->has_code) ? margin(limit, MARGIN_SHARE) : 0;
    CUresult result = limit == NO_LIMIT ? CUDA_SUCCESS : raise_to(card, wish > limit ? wish : whole + wish);
    *before = upkeep->promised;
    if (result == CUDA_SUCCESS) {
        upkeep->has_remains |= wish < upkeep->promised;
        upkeep->promised = wish;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

void upkeep_end_code(int card) {
    if (is_old_near_limit(card))
        look(card);
    else
        upkeep_expect_growth(card);
}
