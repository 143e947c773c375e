/* What the container may have: from its tile's file, or from HAMi's variables where there is no tile.

   The file is looked at now and then, so a limit that is changed holds without a restart. A figure that cannot be read
   is the strictest one that this process has ever seen, never none. */
#define _GNU_SOURCE
#include "tessera.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNTED_FILE "/etc/tessera/nvidia/limits"
#define FILE_VARIABLE "TESSERA_LIMITS"
#define HAMI_VARIABLE "CUDA_DEVICE_MEMORY_LIMIT"
#define LOOK_PERIOD_MS 10
#define LONGEST_FILE 16384
#define UNREADABLE (NO_LIMIT + 1)
#define UNREADABLE_PERCENT (-1)
#define LEAST_PERCENT 1         /* where no share is known, and one should be */
#define HAMI_SPILL "CUDA_OVERSUBSCRIBE"
#define HAMI_TERMINATION "ACTIVE_OOM_KILLER"
#define HAMI_SHARE "CUDA_DEVICE_SM_LIMIT"

typedef struct {
    char uuid[UUID_LENGTH];
    uint64_t bytes, spill_bytes;
    int share_percent;
} line_t;

/* How the share of GPU time is meant, and who goes first. */
typedef struct {
    int is_generous, is_off, priority;
} manner_t;

static struct {
    pthread_mutex_t mutex;
    _Atomic uint64_t looked_ms;
    struct stat seen;           /* of the file as it was read; st_ino 0 before */
    int is_complete;            /* it had the line of its version */
    int count;
    line_t lines[MOST_CARDS];
    uint64_t strictest;
    int has_complained;
    _Atomic uint64_t known[MOST_CARDS];         /* by card, the limit and one; 0 where it was not yet looked for */
    _Atomic uint64_t spill[MOST_CARDS];
    _Atomic int is_terminating;
    manner_t manner;
    int strictest_percent;
    compute_limit_t compute[MOST_CARDS];
} limits = {.mutex = PTHREAD_MUTEX_INITIALIZER, .strictest = NO_LIMIT, .strictest_percent = 100};

/* ---- figures -------------------------------------------------------------------------------------------------- */

static void complain_once(const char *where, const char *what, const char *expected) {
    if (!limits.has_complained)
        say("%s: %s, expected %s; until then the strictest known limit holds", where, what, expected);
    limits.has_complained = 1;
}

/* Digits and perhaps a unit. Nothing else, not even a sign. */
static uint64_t read_figure(const char *text, const char *units, const int *shifts, int default_shift) {
    char *end;
    if (*text < '0' || *text > '9')
        return UNREADABLE;
    unsigned long long figure = strtoull(text, &end, 10);
    int shift = default_shift;
    if (*end != '\0') {
        const char *unit = strchr(units, *end | 0x20);
        if (unit == NULL || end[1] != '\0')
            return UNREADABLE;
        shift = shifts[unit - units];
    }
    if (figure > (UINT64_MAX >> 8) >> shift)
        return UNREADABLE;
    return figure == 0 ? NO_LIMIT : figure << shift;
}

static uint64_t read_mib(const char *text) {
    return read_figure(text, "", NULL, 20);
}

/* As HAMi writes them: bytes, or with one of k, m, g. */
static uint64_t read_hami(const char *text) {
    static const int shifts[] = {10, 20, 30};
    return read_figure(text, "kmg", shifts, 0);
}

/* 0 is no limit, and so is all of the card. What cannot be read is the least that there is. */
static int read_percent(const char *text) {
    char *end;
    unsigned long figure = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (*text < '0' || *text > '9' || *end != '\0' || figure > 100)
        return UNREADABLE_PERCENT;
    int percent = figure == 0 ? 100 : (int)figure;
    if (percent < limits.strictest_percent)
        limits.strictest_percent = percent;
    return percent;
}

/* Room in the host's memory is given only where it is asked for clearly. */
static uint64_t read_spill(const char *text) {
    uint64_t bytes = read_mib(text);
    if (bytes == UNREADABLE)
        complain_once("spill_mib", text, "a whole number of MiB");
    return bytes >= NO_LIMIT ? 0 : bytes;
}

static int is_switched_on(const char *variable) {
    const char *text = getenv(variable);
    return text && (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0);
}

static manner_t read_manner(const char *policy, const char *priority) {
    manner_t manner = {0};
    if (policy && strcasecmp(policy, "default") == 0)
        manner.is_generous = 1;
    else if (policy && strcasecmp(policy, "disable") == 0)
        manner.is_off = 1;
    else if (policy && *policy && strcasecmp(policy, "force"))
        complain_once("the policy of cores", policy, "force, default or disable");
    if (priority && (*priority < '0' || *priority > '9'))
        complain_once("the priority", priority, "0 or 1");
    manner.priority = priority && *priority >= '0' && *priority <= '9' ? atoi(priority) : 0;
    return manner;
}

static uint64_t learn(uint64_t bytes) {
    if (bytes < limits.strictest)
        limits.strictest = bytes;
    return bytes;
}

/* ---- the tile's file ------------------------------------------------------------------------------------------ */

static const char *path_of_file(void) {
    const char *chosen = getenv(FILE_VARIABLE);
    return chosen && access(MOUNTED_FILE, F_OK) ? chosen : MOUNTED_FILE;
}

/* `card <uuid>` and then pairs of a word and its value. */
static void read_card(char *rest) {
    char *uuid = strsep(&rest, " "), *word;
    if (uuid == NULL || limits.count == MOST_CARDS)
        return;
    line_t *line = &limits.lines[limits.count++];
    snprintf(line->uuid, sizeof line->uuid, "%s", uuid);
    line->bytes = UNREADABLE;
    line->spill_bytes = 0;
    line->share_percent = 100;
    while ((word = strsep(&rest, " ")) != NULL) {
        char *value = strsep(&rest, " ");
        if (strcmp(word, "memory_mib") == 0 && value)
            line->bytes = read_mib(value);
        if (strcmp(word, "spill_mib") == 0 && value)
            line->spill_bytes = read_spill(value);
        if (strcmp(word, "cores_percent") == 0 && value)
            line->share_percent = read_percent(value);
    }
    learn(line->bytes);
    if (line->bytes == UNREADABLE)
        complain_once(path_of_file(), uuid, "memory_mib and a whole number of MiB after the card");
    if (line->share_percent == UNREADABLE_PERCENT)
        complain_once(path_of_file(), uuid, "cores_percent and a whole number up to 100 after the card");
}

static void parse(char *text) {
    char *line, *rest = text;
    const char *policy = NULL, *priority = NULL, *on_refusal = NULL;
    limits.count = 0;
    limits.is_complete = 0;
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (strncmp(line, "version ", 8) == 0)
            limits.is_complete = 1;
        else if (strncmp(line, "card ", 5) == 0)
            read_card(line + 5);
        else if (strncmp(line, "cores_policy ", 13) == 0)
            policy = line + 13;
        else if (strncmp(line, "priority ", 9) == 0)
            priority = line + 9;
        else if (strncmp(line, "on_refusal ", 11) == 0)
            on_refusal = line + 11;
    }
    atomic_store(&limits.is_terminating, on_refusal && strcmp(on_refusal, "terminate") == 0);
    limits.manner = read_manner(policy, priority);
    if (!limits.is_complete)
        complain_once(path_of_file(), "no line with a version", "the limits of a tile");
}

static int is_as_seen(const struct stat *file) {
    return file->st_ino == limits.seen.st_ino && file->st_dev == limits.seen.st_dev &&
           file->st_size == limits.seen.st_size && file->st_mtim.tv_sec == limits.seen.st_mtim.tv_sec &&
           file->st_mtim.tv_nsec == limits.seen.st_mtim.tv_nsec;
}

/* Returns whether it was read anew. A file that is gone leaves what it said. */
static int read_file(void) {
    static char text[LONGEST_FILE];
    struct stat file;
    const char *path = path_of_file();
    if (stat(path, &file) == -1 || is_as_seen(&file))
        return 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = descriptor == -1 ? -1 : read(descriptor, text, sizeof text - 1);
    if (descriptor != -1)
        close(descriptor);
    if (length < 0)
        return 0;
    text[length] = '\0';
    limits.seen = file;
    parse(text);
    return 1;
}

/* ---- of a card ------------------------------------------------------------------------------------------------ */

/* NULL where the file does not name the card. */
static const line_t *line_of(const char *uuid) {
    for (int line = 0; line < limits.count; line++)
        if (is_same_card(limits.lines[line].uuid, uuid))
            return &limits.lines[line];
    return NULL;
}

static uint64_t limit_in_file(const char *uuid) {
    const line_t *line = line_of(uuid);
    if (line)
        return line->bytes;
    return limits.is_complete ? NO_LIMIT : UNREADABLE;
}

static uint64_t limit_in_variable(const char *name) {
    const char *text = getenv(name);
    if (text == NULL)
        return NO_LIMIT;
    uint64_t bytes = learn(read_hami(text));
    if (bytes == UNREADABLE)
        complain_once(name, *text ? text : "nothing", "a number of bytes such as 8g");
    return bytes;
}

/* All are read, because another card's may be the strictest that is known. */
static uint64_t limit_in_variables(int position) {
    uint64_t of_all = limit_in_variable(HAMI_VARIABLE), found = NO_LIMIT;
    for (int one = 0; one < MOST_CARDS; one++) {
        char name[sizeof HAMI_VARIABLE + 16];
        snprintf(name, sizeof name, "%s_%d", HAMI_VARIABLE, one);
        uint64_t bytes = limit_in_variable(name);
        if (one == position && getenv(name))
            found = bytes;
    }
    return found == NO_LIMIT ? of_all : found;
}

/* ---- its share of GPU time ------------------------------------------------------------------------------------ */

static int share_in_file(const char *uuid) {
    const line_t *line = line_of(uuid);
    if (line)
        return line->share_percent;
    return limits.is_complete ? 100 : UNREADABLE_PERCENT;
}

static int share_in_variables(int position) {
    char name[sizeof HAMI_SHARE + 16];
    snprintf(name, sizeof name, "%s_%d", HAMI_SHARE, position);
    const char *text = position >= 0 && getenv(name) ? getenv(name) : getenv(HAMI_SHARE);
    int percent = text ? read_percent(text) : 100;
    if (percent == UNREADABLE_PERCENT)
        complain_once(HAMI_SHARE, *text ? text : "nothing", "a whole number up to 100");
    return percent;
}

static compute_limit_t find_compute(int card) {
    int has_file = limits.seen.st_ino != 0;
    if (!has_file)
        limits.manner = read_manner(getenv("GPU_CORE_UTILIZATION_POLICY"), getenv("CUDA_TASK_PRIORITY"));
    int percent = has_file ? share_in_file(region_uuid(card)) : share_in_variables(position_of_card(card));
    if (percent == UNREADABLE_PERCENT)
        percent = limits.strictest_percent < 100 ? limits.strictest_percent : LEAST_PERCENT;
    return (compute_limit_t){
        .share_percent = percent == 100 || limits.manner.is_off ? 0 : percent,
        .is_generous = limits.manner.is_generous,
        .priority = limits.manner.priority,
    };
}

int strictest_share(void) {
    pthread_mutex_lock(&limits.mutex);
    read_file();
    int has_file = limits.seen.st_ino != 0, percent = 100;
    for (int line = 0; has_file && line < limits.count; line++)
        if (limits.lines[line].share_percent < percent)
            percent = limits.lines[line].share_percent;
    if (!has_file) {
        limits.manner = read_manner(getenv("GPU_CORE_UTILIZATION_POLICY"), getenv("CUDA_TASK_PRIORITY"));
        percent = share_in_variables(-1);
    }
    int is_strict = !limits.manner.is_off && !limits.manner.is_generous;
    pthread_mutex_unlock(&limits.mutex);
    return !is_strict ? 100 : percent < LEAST_PERCENT ? LEAST_PERCENT : percent;
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
    int has_file = limits.seen.st_ino != 0;
    uint64_t bytes = has_file ? limit_in_file(region_uuid(card)) : limit_in_variables(position_of_card(card));
    if (bytes == UNREADABLE)
        bytes = limits.strictest == NO_LIMIT ? 0 : limits.strictest;
    return bytes;
}

/* HAMi's variable says that the host's memory may be used, not how much of it: as much again as of the card. */
static uint64_t find_spill(int card, uint64_t bytes) {
    const line_t *line = line_of(region_uuid(card));
    if (limits.seen.st_ino != 0)
        return line && bytes != NO_LIMIT ? line->spill_bytes : 0;
    return bytes != NO_LIMIT && is_switched_on(HAMI_SPILL) ? bytes : 0;
}

static void learn_card(int card) {
    uint64_t bytes = find_limit(card);
    limits.compute[card] = find_compute(card);
    atomic_store(&limits.spill[card], find_spill(card, bytes));
    if (limits.seen.st_ino == 0)
        atomic_store(&limits.is_terminating, is_switched_on(HAMI_TERMINATION));
    atomic_store(&limits.known[card], bytes + 1);
    atomic_store(&region_figures(card)->limit_bytes, bytes == NO_LIMIT ? 0 : bytes ? bytes : 1);
}

static void look(int card) {
    pthread_mutex_lock(&limits.mutex);
    if (read_file())
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
    for (int card = 0; card < MOST_CARDS; card++)
        atomic_store(&limits.known[card], 0);
}
