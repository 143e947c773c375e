/* What the container may have: from its tile's file, or from HAMi's variables where there is no tile.

   The file is looked at now and then, so a limit that is changed holds without a restart. A figure that cannot be read
   is the strictest one that this process has ever seen, never none. */
#define _GNU_SOURCE
#include "tile_file.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOOK_PERIOD_MS 10
#define LEAST_PERCENT 1         /* where no share is known, and one should be */
#define HAMI_VARIABLE "CUDA_DEVICE_MEMORY_LIMIT"
#define HAMI_SHARE "CUDA_DEVICE_SM_LIMIT"
#define HAMI_SPILL "CUDA_OVERSUBSCRIBE"
#define HAMI_TERMINATION "ACTIVE_OOM_KILLER"
#define LONGEST_NAME 64

static struct {
    pthread_mutex_t mutex;
    _Atomic uint64_t looked_ms;
    _Atomic uint64_t known[MOST_CARDS];         /* by card, the limit and one; 0 where it was not yet looked for */
    _Atomic uint64_t spill[MOST_CARDS];
    compute_limit_t compute[MOST_CARDS];
    _Atomic int is_terminating;
} limits = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- of a card ------------------------------------------------------------------------------------------------ */

static uint64_t limit_in_file(const char *uuid) {
    const tile_line_t *line = tile_line_of(uuid);
    if (line)
        return line->bytes;
    return tile.is_complete ? NO_LIMIT : UNREADABLE;
}

static int share_in_file(const char *uuid) {
    const tile_line_t *line = tile_line_of(uuid);
    if (line)
        return line->share_percent;
    return tile.is_complete ? 100 : UNREADABLE_PERCENT;
}

/* ---- in HAMi's variables -------------------------------------------------------------------------------------- */

/* NO_LIMIT where it is not set or 0, UNREADABLE for garbage. */
typedef uint64_t read_variable_t(const char *name);

static uint64_t limit_in_variable(const char *name) {
    const char *text = getenv(name);
    if (text == NULL)
        return NO_LIMIT;
    uint64_t bytes = read_hami(text);
    if (bytes == UNREADABLE)
        complain_once(name, *text ? text : "nothing", "a number of bytes such as 8g");
    return bytes;
}

static uint64_t share_in_variable(const char *name) {
    const char *text = getenv(name);
    if (text == NULL)
        return NO_LIMIT;
    int percent = read_percent(text);
    if (percent == UNREADABLE_PERCENT) {
        complain_once(name, *text ? text : "nothing", "a whole number up to 100");
        return UNREADABLE;
    }
    return strtoul(text, NULL, 10) == 0 ? NO_LIMIT : (uint64_t)percent;
}

static uint64_t stricter(uint64_t one, uint64_t other) {
    if (one == UNREADABLE || other == UNREADABLE)
        return UNREADABLE;
    return one < other ? one : other;
}

/* That of the card's place in the container goes before that of all cards. All are read, because another card's may be
   the strictest that is known; and where nobody tells the place, the strictest counts. */
static uint64_t figure_of(const char *variable, read_variable_t *read, int position) {
    uint64_t of_all = read(variable), of_place = NO_LIMIT, strictest = of_all;
    for (int one = 0; one < MOST_CARDS; one++) {
        char name[LONGEST_NAME];
        snprintf(name, sizeof name, "%s_%d", variable, one);
        uint64_t figure = read(name);
        strictest = stricter(strictest, figure);
        if (one == position)
            of_place = figure;
    }
    if (position == NO_PLACE)
        return strictest;
    return of_place == NO_LIMIT ? of_all : of_place;
}

static uint64_t limit_in_variables(int position) {
    return figure_of(HAMI_VARIABLE, limit_in_variable, position);
}

static int share_in_variables(int position) {
    uint64_t percent = figure_of(HAMI_SHARE, share_in_variable, position);
    return percent == NO_LIMIT ? 100 : percent == UNREADABLE ? UNREADABLE_PERCENT : (int)percent;
}

/* ---- its share of GPU time ------------------------------------------------------------------------------------ */

static int settle_percent(int percent) {
    if (percent != UNREADABLE_PERCENT)
        return percent;
    return strictest_percent() < 100 ? strictest_percent() : LEAST_PERCENT;
}

static compute_limit_t find_compute(int card) {
    int has_file = tile.is_there;
    if (!has_file)
        tile.manner = read_manner(getenv("GPU_CORE_UTILIZATION_POLICY"), getenv("CUDA_TASK_PRIORITY"));
    int percent = has_file ? share_in_file(region_uuid(card)) : share_in_variables(position_of_card(card));
    percent = settle_percent(percent);
    return (compute_limit_t){
        .share_percent = percent == 100 || tile.manner.is_off ? 0 : percent,
        .is_generous = tile.manner.is_generous,
        .priority = tile.manner.priority,
    };
}

int strictest_share(void) {
    pthread_mutex_lock(&limits.mutex);
    tile_read();
    int has_file = tile.is_there, percent = tile.is_there && !tile.is_complete ? UNREADABLE_PERCENT : 100;
    for (int line = 0; has_file && line < tile.count; line++)
        if (tile.lines[line].share_percent < percent)
            percent = tile.lines[line].share_percent;
    if (!has_file) {
        tile.manner = read_manner(getenv("GPU_CORE_UTILIZATION_POLICY"), getenv("CUDA_TASK_PRIORITY"));
        percent = share_in_variables(NO_PLACE);
    }
    int is_strict = !tile.manner.is_off && !tile.manner.is_generous;
    pthread_mutex_unlock(&limits.mutex);
    return is_strict ? settle_percent(percent) : 100;
}

compute_limit_t compute_limit_of(int card) {
    limit_of(card);
    pthread_mutex_lock(&limits.mutex);
    compute_limit_t limit = limits.compute[card];
    pthread_mutex_unlock(&limits.mutex);
    return limit;
}

/* ---- of a card, all of it ------------------------------------------------------------------------------------- */

static uint64_t find_limit(int card) {
    int has_file = tile.is_there;
    uint64_t bytes = has_file ? limit_in_file(region_uuid(card)) : limit_in_variables(position_of_card(card));
    if (bytes == UNREADABLE)
        bytes = strictest_bytes() == NO_LIMIT ? 0 : strictest_bytes();
    return bytes;
}

static int is_switched_on(const char *variable) {
    const char *text = getenv(variable);
    return text && (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0);
}

/* HAMi's variable says that the host's memory may be used, not how much of it: as much again as of the card. */
static uint64_t find_spill(int card, uint64_t bytes) {
    const tile_line_t *line = tile_line_of(region_uuid(card));
    if (tile.is_there)
        return line && bytes != NO_LIMIT ? line->spill_bytes : 0;
    return bytes != NO_LIMIT && is_switched_on(HAMI_SPILL) ? bytes : 0;
}

static void learn_card(int card) {
    uint64_t bytes = find_limit(card);
    limits.compute[card] = find_compute(card);
    atomic_store(&limits.spill[card], find_spill(card, bytes));
    atomic_store(&limits.is_terminating, tile.is_there ? tile.is_terminating : is_switched_on(HAMI_TERMINATION));
    atomic_store(&limits.known[card], bytes + 1);
    atomic_store(&region_figures(card)->limit_bytes, bytes == NO_LIMIT ? 0 : bytes ? bytes : 1);
}

static void look(int card) {
    pthread_mutex_lock(&limits.mutex);
    if (tile_read())
        for (int one = 0; one < MOST_CARDS; one++)
            if (atomic_load(&limits.known[one]))
                learn_card(one);
    if (atomic_load(&limits.known[card]) == 0)
        learn_card(card);
    pthread_mutex_unlock(&limits.mutex);
}

uint64_t limit_of(int card) {
    uint64_t now_ms = coarse_ms(), looked = atomic_load_explicit(&limits.looked_ms, memory_order_relaxed);
    uint64_t known = atomic_load_explicit(&limits.known[card], memory_order_relaxed);
    if (known == 0 || now_ms - looked >= LOOK_PERIOD_MS) {
        atomic_store_explicit(&limits.looked_ms, now_ms, memory_order_relaxed);
        look(card);
        known = atomic_load(&limits.known[card]);
    }
    return known - 1;
}

uint64_t spill_limit_of(int card) {
    return limit_of(card) == NO_LIMIT ? 0 : atomic_load(&limits.spill[card]);
}

int refusal_is_the_end(void) {
    return atomic_load(&limits.is_terminating);
}

/* In a forked child, whose parent may have been looking, and which may number its cards anew. */
void forget_limits(void) {
    pthread_mutex_init(&limits.mutex, NULL);
    tile_forget();
    for (int card = 0; card < MOST_CARDS; card++)
        atomic_store(&limits.known[card], 0);
}
