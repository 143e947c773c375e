/* The time of simulated cards, which all processes of the machine share.

   A card runs the work of one process at a time. As long as only one has work, its work runs back to back; where
   several have, they take turns of 2 ms, and each change costs 0.18 ms, as was measured on an H200. Nobody burns time:
   whoever looks at a card works out what it has done since somebody last looked. So what is worked out late is as exact
   as what is worked out at once.

   Work is a length in nanoseconds. It is asked for in an order, and a position is how much of its work a process has
   asked for up to there. Times are nanoseconds of CLOCK_MONOTONIC. */

#ifndef TESSERA_SIM_CARD_TIME_H
#define TESSERA_SIM_CARD_TIME_H

#include "machine.h"

#include <stdint.h>

#define CARD_TURN_NS 2000000
#define CARD_SWITCH_NS 180000

int64_t time_now(void);

/* Join the file `time`; repeated calls do nothing, and a forked child joins anew. What a dead process with the same
   slot had still asked for is dropped. Returns 0, or -1 with a sentence on stderr. Needs machine_open. */
int time_join(void);

/* Ask for work of this process, not to begin before `at`. Returns the position of its end. */
uint64_t time_ask(const card_t *card, uint64_t ns, int64_t at);

/* Let the card do what it does until `now`, if nobody has yet. Returns the position up to which this process's work is
   done. */
uint64_t time_settle(const card_t *card, int64_t now);

/* When the work up to a position was done that is done. Exact for as long as a process looks now and then: of more than
   some hundred turns only the last are known. */
int64_t time_of(const card_t *card, uint64_t position);

/* Let go of all work that is not done: its context has failed. */
void time_drop(const card_t *card);

/* Thousandths of the last `window_ns`, which is at most a second, in which work of the process was on the card; of
   anybody with NO_SLOT. */
#define NO_SLOT (-1)
int time_busy(const card_t *card, int slot, int64_t now, int64_t window_ns);

#endif
