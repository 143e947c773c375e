/* The file that all tenants of a card share, whichever containers they are in: who is there, what each may still use
   of the card's time, and whose turn it is.

   There is no lock on the way of a launch. A figure is either written by one process, or changed in one atomic step, so
   a process that is killed at any instruction leaves nothing half done. What a dead tenant leaves behind runs out: its
   stamps grow old and its turn has an end. Times are nanoseconds of CLOCK_MONOTONIC, which all containers of a machine
   have in common. All zero is a card without tenants. */

#ifndef TESSERA_CARD_FILE_H
#define TESSERA_CARD_FILE_H

#include <stdatomic.h>
#include <stdint.h>

#define CARD_MAGIC 0x44524143u
#define CARD_VERSION 1
#define CARD_TENANTS 64
#define CARD_MEMBERS 1024
#define PAID_WORDS 128

typedef struct {
    _Atomic uint64_t id;                /* of the container; 0: free */
    _Atomic int64_t budget_ns;          /* GPU time that it may still use; below 0 it owes */
    _Atomic uint64_t refilled_ns;       /* up to when its budget has been filled */
    _Atomic uint64_t active_ns;         /* its last launch */
    _Atomic uint64_t heavy_ns;          /* when it last kept the card busy by itself */
    _Atomic uint64_t waiting_ns;        /* a launch of it waited then; 0: none waits */
    _Atomic uint64_t turn_ended_ns;     /* its last turn */
    _Atomic uint64_t kernel_ns;         /* what one launch of it takes */
    _Atomic uint32_t share_percent;     /* 0: no limit */
    _Atomic uint32_t priority;          /* 0 goes before 1 */
    uint64_t spare[7];
    _Atomic uint64_t paid[PAID_WORDS];  /* which moments of late are paid for, whoever of its processes used them */
} card_tenant_t;

typedef struct {
    _Atomic uint64_t tenant;            /* its place, and one; 0: free */
    _Atomic uint64_t in_flight_ns;      /* what it has launched and the card has not done */
    _Atomic uint64_t stamped_ns;        /* when it said so */
    _Atomic uint64_t demand_ppm;        /* how much of the card it would keep busy, were it alone */
} card_member_t;

typedef struct {
    uint32_t magic, version;
    _Atomic uint32_t tenants_used, members_used;
    _Atomic uint32_t bell;              /* a futex: rung when a turn ends */
    _Atomic uint32_t is_ending;         /* the turn ends in a moment: whoever waits may as well look all the time */
    _Atomic uint64_t turn;              /* microseconds until when it lasts, and in the last byte whose it is */
    _Atomic uint64_t turn_began_ns, turn_grant_ns;
    uint64_t spare[10];
    card_tenant_t tenants[CARD_TENANTS];
    card_member_t members[CARD_MEMBERS];
} card_file_t;

_Static_assert(sizeof(card_tenant_t) == 1152 && sizeof(card_member_t) == 32, "releases of one version share it");

#endif
