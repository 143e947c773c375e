/* The simulated cards of this machine, as one process sees them.

   A directory, named by TESSERA_SIM, stands for the hardware. Its file `cards` says which cards there are; its file
   `memory` is shared by all processes and says who has taken how much of which card. Whoever dies gives back what it
   had: a process holds a lock on its own byte of `memory`, the kernel lets go of it at any death, and locks are seen
   across the PID namespaces of containers, where process ids mean nothing. Its file `processes` is locked in the same
   places and holds nothing: by these locks the kernel tells who it is that has a slot. The layouts are known to
   tessera.vendors.simulated_watching too. */

#ifndef TESSERA_SIM_MACHINE_H
#define TESSERA_SIM_MACHINE_H

#include <stdint.h>
#include <sys/types.h>

#define MACHINE_MOST_CARDS 64
#define MACHINE_MOST_PROCESSES 1024

typedef struct {
    int index;                  /* on the machine, whoever looks */
    char uuid[64];              /* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */
    char name[96];
    uint64_t memory_bytes;
    uint64_t context_bytes;     /* what each context of a process takes before it allocates anything */
    int compute_major, compute_minor;
    int multiprocessors;
    int numa;
} card_t;

typedef struct {
    int slot;
    pid_t pid;                  /* as the process itself knows it */
    uint64_t bytes;
} tenant_t;

/* Read the description and join the shared memory. Returns 0, or -1 with a sentence on stderr. Repeated calls do
   nothing; in a forked child the first call joins anew. Safe in any thread, as is everything below. */
int machine_open(void);

/* The cards that the container of this process was given (NVIDIA_VISIBLE_DEVICES), in the machine's order. Valid after
   machine_open. */
int machine_card_count(void);
const card_t *machine_card(int position);

/* Charge `bytes` of the card to this process. Returns 0, or -1 with nothing charged where that much is not free. */
int machine_take(const card_t *card, uint64_t bytes);
void machine_give_back(const card_t *card, uint64_t bytes);

/* Of this process among all that share the machine: taken when it is first needed, and outlived by no process. Valid
   after machine_open. Returns -1 with a sentence on stderr where there is no room. */
int machine_slot(void);
int machine_slot_lives(int slot);

/* How many cards there are and which, seen by this process or not. */
int machine_all_cards(void);
const card_t *machine_any_card(int index);

/* Open a file of the directory that all processes share. Returns a descriptor, or -1 with a sentence on stderr. */
int machine_open_shared(const char *name);

/* How much of the card all living processes hold. */
uint64_t machine_used(const card_t *card);

/* Who holds some of the card. Returns how many there are; at most `room` of them are written. */
int machine_tenants(const card_t *card, tenant_t *tenants, int room);

#endif
