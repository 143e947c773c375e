/* The file that all processes of a container share, as it lies on disk. The node's agent reads it too
   (tessera.node.regions), so a change of it is a new VERSION.

   Figures of a slot are written by its process alone. Those of a card are counters that only grow, or what was last
   read; nothing is taken back when a process dies. All zero is a region without cards and processes. */

#ifndef TESSERA_REGION_FILE_H
#define TESSERA_REGION_FILE_H

#include <stdatomic.h>
#include <stdint.h>

#define REGION_MAGIC 0x41524553u
#define REGION_VERSION 3
#define REGION_CARDS 32
#define REGION_SLOTS 1024
#define REGION_UUID 48

typedef struct {
    _Atomic uint64_t bytes;             /* of the card's memory, that the process was granted */
    _Atomic uint64_t asked;             /* that it counts on top of what all hold, to see whether it fits */
} region_part_t;

typedef struct {
    _Atomic uint64_t pid;               /* as the process itself knows it; written last, cleared last: 0 is free */
    _Atomic uint64_t host_pid;          /* as the node's agent knows it; 0 where it was not told */
    _Atomic uint64_t grants;            /* how often it got more of some card; counted before it holds it */
    uint64_t spare[5];
    region_part_t parts[REGION_CARDS];  /* of each card */
} region_slot_t;

typedef struct {
    char uuid[REGION_UUID];             /* empty: no card from here on. host-...: what of that card lies in the host */
    _Atomic uint64_t context_bytes;     /* what a context takes; 0 while nobody has measured it */
    _Atomic uint64_t limit_bytes;       /* in force, 0 where nothing limits it */
    _Atomic uint64_t share_percent;     /* of GPU time, in force; 0 where nothing limits it */
    _Atomic uint64_t gpu_ns;            /* GPU time that was used */
    _Atomic uint64_t throttled_ns;      /* how long launches have waited for their share */
    _Atomic uint64_t refusals;          /* requests for memory that went over the limit */
    _Atomic uint64_t launched_ms;       /* of CLOCK_MONOTONIC, the last launch */
    _Atomic uint64_t unclaimed_bytes;   /* that processes have beyond what they were charged with, by NVML */
    uint64_t spare[2];
} region_card_t;

typedef struct {
    uint32_t magic, version;
    _Atomic uint32_t slots_used;        /* nobody has a slot from here on */
    uint32_t spare[13];
    region_card_t cards[REGION_CARDS];
    region_slot_t slots[REGION_SLOTS];
} region_file_t;

_Static_assert(sizeof(region_slot_t) == 576 && sizeof(region_card_t) == 128, "the agent reads it");
_Static_assert(sizeof(region_file_t) == 64 + REGION_CARDS * 128 + REGION_SLOTS * 576, "the agent reads it");

#endif
