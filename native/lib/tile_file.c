/* The tile's file, as the node writes it: lines of words, of which those of later releases are passed over. */
#define _GNU_SOURCE
#include "tile_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNTED_FILE "/etc/tessera/nvidia/limits"
#define FILE_VARIABLE "TESSERA_LIMITS"
#define LONGEST_FILE 16384
#define LAST_PRIORITY (1 << 30)

tile_t tile;

static struct {
    uint64_t bytes;
    int percent;
} strictest = {NO_LIMIT, 100};

static struct stat seen;        /* the file as it was read */

uint64_t strictest_bytes(void) {
    return strictest.bytes;
}

int strictest_percent(void) {
    return strictest.percent;
}

/* ---- amounts -------------------------------------------------------------------------------------------------- */

#define MOST_COMPLAINTS 16

static uint64_t hash_of(const char *text) {
    uint64_t hash = 14695981039346656037u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

void complain_once(const char *where, const char *what, const char *expected) {
    static uint64_t told[MOST_COMPLAINTS];
    static int count;
    uint64_t hash = hash_of(where);
    for (int one = 0; one < count; one++)
        if (told[one] == hash)
            return;
    if (count == MOST_COMPLAINTS)
        return;
    told[count++] = hash;
    say("%s: %s, expected %s; until then the strictest known limit holds", where, what, expected);
}

static uint64_t learn(uint64_t bytes) {
    if (bytes < strictest.bytes)
        strictest.bytes = bytes;
    return bytes;
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

uint64_t read_hami(const char *text) {
    static const int shifts[] = {10, 20, 30};
    return learn(read_figure(text, "kmg", shifts, 0));
}

int read_percent(const char *text) {
    char *end;
    unsigned long figure = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (*text < '0' || *text > '9' || *end != '\0' || figure > 100)
        return UNREADABLE_PERCENT;
    int percent = figure == 0 ? 100 : (int)figure;
    if (percent < strictest.percent)
        strictest.percent = percent;
    return percent;
}

/* Room in the host's memory is given only where it is asked for clearly. */
static uint64_t read_spill(const char *text) {
    uint64_t bytes = read_mib(text);
    if (bytes == UNREADABLE)
        complain_once("spill_mib", text, "a whole number of MiB");
    return bytes >= NO_LIMIT ? 0 : bytes;
}

/* An unreadable one goes last. */
static int read_priority(const char *text) {
    char *end;
    if (text == NULL)
        return 0;
    unsigned long priority = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (*text >= '0' && *text <= '9' && *end == '\0' && priority <= LAST_PRIORITY)
        return (int)priority;
    complain_once("the priority", *text ? text : "nothing", "0 or 1");
    return LAST_PRIORITY;
}

manner_t read_manner(const char *policy, const char *priority) {
    manner_t manner = {.priority = read_priority(priority)};
    if (policy && strcasecmp(policy, "default") == 0)
        manner.is_generous = 1;
    else if (policy && strcasecmp(policy, "disable") == 0)
        manner.is_off = 1;
    else if (policy && *policy && strcasecmp(policy, "force"))
        complain_once("the policy of cores", policy, "force, default or disable");
    return manner;
}

/* ---- the tile's file ------------------------------------------------------------------------------------------ */

/* Rather than out of reach. */
static int is_absent(void) {
    return errno == ENOENT || errno == ENOTDIR;
}

static const char *path_of_file(void) {
    const char *chosen = getenv(FILE_VARIABLE);
    return chosen && access(MOUNTED_FILE, F_OK) && is_absent() ? chosen : MOUNTED_FILE;
}

/* `card <uuid>` and then pairs of a word and its value. What a line that is cut off does not say it may have said. */
static void read_card(char *rest, int is_whole) {
    char *uuid = strsep(&rest, " "), *word;
    if (uuid == NULL || tile.count == MOST_CARDS)
        return;
    tile_line_t *line = &tile.lines[tile.count++];
    snprintf(line->uuid, sizeof line->uuid, "%s", uuid);
    line->bytes = UNREADABLE;
    line->spill_bytes = 0;
    line->share_percent = is_whole ? 100 : UNREADABLE_PERCENT;
    while ((word = strsep(&rest, " ")) != NULL) {
        char *value = strsep(&rest, " ");
        if (strcmp(word, "memory_mib") == 0 && value)
            line->bytes = read_mib(value);
        if (strcmp(word, "spill_mib") == 0 && value)
            line->spill_bytes = read_spill(value);
        if (strcmp(word, "cores_percent") == 0)
            line->share_percent = value ? read_percent(value) : UNREADABLE_PERCENT;
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
    size_t length = strlen(text);
    int has_version = 0, ends_with_line = length > 0 && text[length - 1] == '\n';
    tile.count = 0;
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (strncmp(line, "version ", 8) == 0)
            has_version = 1;
        else if (strncmp(line, "card ", 5) == 0)
            read_card(line + 5, rest != NULL);
        else if (strncmp(line, "cores_policy ", 13) == 0)
            policy = line + 13;
        else if (strncmp(line, "priority ", 9) == 0)
            priority = line + 9;
        else if (strncmp(line, "on_refusal ", 11) == 0)
            on_refusal = line + 11;
    }
    tile.is_terminating = on_refusal && strcmp(on_refusal, "terminate") == 0;
    tile.manner = read_manner(policy, priority);
    tile.is_complete = has_version && ends_with_line && tile.count > 0;
    if (!has_version)
        complain_once(path_of_file(), "no line with a version", "the limits of a tile");
    else if (!tile.is_complete)
        complain_once(path_of_file(), "it ends too early", "whole lines and a card among them");
}

static int is_as_seen(const struct stat *file) {
    return file->st_ino == seen.st_ino && file->st_dev == seen.st_dev &&
           file->st_size == seen.st_size && file->st_mtim.tv_sec == seen.st_mtim.tv_sec &&
           file->st_mtim.tv_nsec == seen.st_mtim.tv_nsec;
}

void tile_forget(void) {
    seen = (struct stat){0};
    tile = (tile_t){0};
}

/* A file that is there and cannot be read says no less than one that cannot be understood. */
static int note_unreadable(const char *path) {
    complain_once(path, strerror(errno), "a file that can be read");
    if (tile.is_there)
        return 0;
    tile.is_there = 1;
    return 1;
}

static ssize_t read_text(const char *path, char *text, size_t room) {
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t length = descriptor == -1 ? -1 : read(descriptor, text, room - 1);
    int problem = errno;
    if (descriptor != -1)
        close(descriptor);
    errno = problem;
    text[length < 0 ? 0 : length] = '\0';
    return length;
}

int tile_read(void) {
    static char text[LONGEST_FILE];
    struct stat file;
    const char *path = path_of_file();
    int is_found = stat(path, &file) == 0;
    if (is_found ? is_as_seen(&file) : is_absent())
        return 0;
    if (!is_found || read_text(path, text, sizeof text) < 0)
        return is_absent() ? 0 : note_unreadable(path);
    seen = file;
    tile.is_there = 1;
    parse(text);
    return 1;
}

const tile_line_t *tile_line_of(const char *uuid) {
    for (int line = 0; line < tile.count; line++)
        if (is_same_card(tile.lines[line].uuid, uuid))
            return &tile.lines[line];
    return NULL;
}
