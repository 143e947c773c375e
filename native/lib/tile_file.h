/* What the tile's file says, and amounts as people write them. For limits.c, which has the mutex. */

#ifndef TESSERA_TILE_FILE_H
#define TESSERA_TILE_FILE_H

#include "tessera.h"

#define UNREADABLE (NO_LIMIT + 1)
#define UNREADABLE_PERCENT (-1)

typedef struct {
    char uuid[UUID_LENGTH];
    uint64_t bytes, spill_bytes;
    int share_percent;
} tile_line_t;

/* How the share of GPU time is meant, and who goes first. */
typedef struct {
    int is_generous, is_off, priority;
} manner_t;

typedef struct {
    int is_there;               /* there was one; one that is gone later leaves what it said */
    int is_complete;            /* it was read to its end, so a card that it does not name has no limit */
    int count;
    tile_line_t lines[MOST_CARDS];
    manner_t manner;
    int is_terminating;
} tile_t;
extern tile_t tile;

/* Look whether the file has changed. Returns whether it was read anew. */
int tile_read(void);

/* What was read so far is not believed, as in a child whose parent may have been reading. */
void tile_forget(void);

/* NULL where the file does not name the card. */
const tile_line_t *tile_line_of(const char *uuid);

/* The strictest figures that this process has ever read; NO_LIMIT and 100 before any. */
uint64_t strictest_bytes(void);
int strictest_percent(void);

/* HAMi's way to write memory: bytes, or with one of k, m, g. NO_LIMIT for 0, UNREADABLE for garbage. */
uint64_t read_hami(const char *text);

/* 0 is no limit, and so is all of the card: 100. UNREADABLE_PERCENT for garbage. */
int read_percent(const char *text);
manner_t read_manner(const char *policy, const char *priority);

/* One line for each place that cannot be read. */
void complain_once(const char *where, const char *what, const char *expected);

#endif
