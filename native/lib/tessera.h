/* What the parts of libtessera.so share.

   The library stands between a program and its driver, and keeps all processes of a container together inside the
   memory that its tile has. Nothing here runs before a program asks for CUDA, and nothing here ends a program unless
   its tile says so. A card is a number of the shared region (region_card); NO_CARD is one that the library does not
   keep, and whatever is asked of it goes to the driver untouched. */

#ifndef TESSERA_H
#define TESSERA_H

#include "cuda_api.h"
#include "entries.h"
#include "launch_api.h"
#include "launch_entries.h"
#include "region_file.h"

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#define NO_CARD (-1)
#define MOST_DEVICES 64
#define CARDS_BEYOND MOST_DEVICES       /* for which the region has no room */
#define MOST_CARDS (REGION_CARDS + CARDS_BEYOND)
#define UUID_LENGTH REGION_UUID
#define NO_LIMIT (UINT64_MAX / 2)
#define PAGE ((uint64_t)2 << 20)

static inline uint64_t round_up(uint64_t value, uint64_t grain) {
    return value > UINT64_MAX - grain ? UINT64_MAX : (value + grain - 1) / grain * grain;
}

static inline uint64_t coarse_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- log.c ---- */

/* One line on stderr, `tessera: ` before it, for what an operator must know. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- resolver.c ---- */

/* The C library's own, found past the entries that intercept.c puts in their place. NULL where there is none. */
typedef void *dlsym_t(void *library, const char *name);
typedef void *dlvsym_t(void *library, const char *name, const char *version);
dlsym_t *real_dlsym(void);
dlvsym_t *real_dlvsym(void);

/* ---- driver.c ---- */

#define REAL_ENTRY(name) __typeof__(&name) name;
typedef struct {
    CUDA_HOOKED(REAL_ENTRY)
    CUDA_ASKED(REAL_ENTRY)
    LAUNCH_HOOKED(REAL_ENTRY)
    LAUNCH_ASKED(REAL_ENTRY)
    NVML_HOOKED(REAL_ENTRY)
    NVML_ASKED(REAL_ENTRY)
} real_t;

/* The driver's entries. Those of CUDA are valid after load_cuda, those of NVML after load_nvml. */
extern real_t real;

/* Find the entries, once. Returns 0, or -1 where the library cannot be loaded. Cheap afterwards. */
int load_cuda(void);
int load_nvml(void);

/* As load_cuda and load_nvml, for a program that may have none: loads nothing that is not loaded. */
int find_cuda(void);
int find_nvml(void);

/* What a program gets for an entry that a lookup found: the library's own, where it stands before it, or the entry
   itself. NULL for one of the library's own that has no driver behind it. */
void *stand_before(void *entry);

/* Whether the library has an entry of this name, and then its real one; NULL where the driver lacks it. */
int has_entry(const char *name, void **entry);

/* Call a real entry from the entry that stands before it. */
#define CALL(name, ...)                                                                                                \
    (real.name || (load_cuda() == 0 && real.name) ? real.name(__VA_ARGS__) : CUDA_ERROR_NOT_SUPPORTED)

/* ---- shared_file.c: a file that processes share ---- */

/* A descriptor of -1 is no file. */
typedef struct {
    _Atomic int descriptor;
    char path[PATH_MAX];
    struct stat identity;
    void *mapping;
    size_t bytes;
} shared_t;

/* Returns NULL, or what stands in the way. The file is made where it is missing; all zero at first. */
const char *shared_open(shared_t *file, const char *path, size_t bytes, void **mapping);
void shared_close(shared_t *file);

/* Not between threads. Waits a bounded time; returns 0, or -1 without the lock. */
int shared_lock(shared_t *file, off_t byte);
void shared_unlock(shared_t *file, off_t byte);

/* The lock for as long as the file is mapped, without waiting. Returns 0, or -1 without it. */
int shared_keep(shared_t *file, off_t byte);

/* Whether nobody has the lock, as far as that can be said. */
int shared_is_free(shared_t *file, off_t byte);

/* ---- region.c: figures that all processes of the container share ---- */

/* Join the file; repeated calls do nothing, and a forked child joins anew. Where that is impossible the process counts
   for itself alone, and one line says so. */
void region_join(void);

/* The file and the slot of this process, after joining; and what is counted here alone. */
typedef struct {
    region_file_t *file;
    region_slot_t *own;
    region_card_t beyond[CARDS_BEYOND];
    region_part_t parts_beyond[CARDS_BEYOND];
} region_here_t;
extern region_here_t region_here;

/* How many slots are looked at, whatever is written in the file. */
static inline uint32_t region_slot_count(void) {
    uint32_t used = atomic_load(&region_here.file->slots_used);
    return used < REGION_SLOTS ? used : REGION_SLOTS;
}

/* The number of the card with this UUID: the same in all processes, or from REGION_CARDS on one of this process alone.
   NO_CARD where there are more than anybody has. */
int region_card(const char *uuid);
const char *region_uuid(int card);

/* Whether two UUIDs are of one card, or of one part of a card. */
int is_same_card(const char *one, const char *other);

/* One process at a time, let go by the kernel at any death. Waits a bounded time, or not at all; returns 0, or -1
   without it. */
int region_lock(void);
int region_try_lock(void);
void region_unlock(void);

/* Whether some of the card is held by one of the dead. */
int region_has_dead(int card);

/* Empty the slots of the dead; with the region locked. */
void bury_the_dead(void);
int region_slot_is_alive(int slot);

/* As the lock, for whoever measures what a context takes. Nobody who allocates waits for it. */
int region_begin_measuring(void);
void region_end_measuring(void);

/* ---- agent.c ---- */

/* The number of this process on its node, 0 where nobody says it within that time. */
uint64_t ask_host_pid(int patience_ms);

/* ---- figures.c: what the processes of the container hold ---- */

/* Charge `bytes` to this process, if all processes together stay within `cap`. Returns 0 and what is left then, or -1
   with nothing charged. No lock, except where the dead hold something or two ask at the same moment. */
int region_reserve(int card, uint64_t bytes, uint64_t cap, uint64_t *left);

/* Charge or give back without asking, for what the driver has already done. */
void region_add(int card, uint64_t bytes);
void region_give_back(int card, uint64_t bytes);

/* What all living processes hold. */
uint64_t region_used(int card);

/* Whether the living hold more than `cap`. */
int region_is_over(int card, uint64_t cap);

/* What a context takes of the card; 0 while nobody has measured it. */
uint64_t region_context_bytes(int card);
void region_learn_context_bytes(int card, uint64_t bytes);

/* Which file it is, so that containers can be told apart. Returns 0, or -1 where it is not shared. */
int region_identity(struct stat *identity);

/* What is told of the card to the node's agent. */
region_card_t *region_figures(int card);

/* Who holds some of the card, or of what is beside it in the host's memory, unless that is NO_CARD. Returns how many
   there are; at most `room` of them are written. */
typedef struct {
    uint32_t pid, host_pid;
    uint64_t bytes;
} holder_t;
int region_holders(int card, int beside, holder_t *holders, int room);

/* What this process is charged with from now on: at the end, at most, and whether anything changed. One at a time. */
typedef struct {
    uint64_t now, most;
    int has_changed;
} watched_t;
void region_watch(int card);
watched_t region_stop_watching(int card);

/* ---- limits.c ---- */

/* What the container may have of the card, in bytes; NO_LIMIT where nothing limits it. Looks now and then whether the
   tile's file has changed. */
uint64_t limit_of(int card);

/* Its share of the card's time; 0 percent where nothing limits it. `is_generous`: it may use what others leave. */
typedef struct {
    int share_percent, is_generous, priority;
} compute_limit_t;
compute_limit_t compute_limit_of(int card);

/* The least of all cards' shares in percent, before any card is known; 100 where nothing limits them. */
int strictest_share(void);

/* What may lie in the host's memory beyond the limit; 0 where nothing may. */
uint64_t spill_limit_of(int card);

/* Whether the container ends where it would be refused memory. */
int refusal_is_the_end(void);
void forget_limits(void);

/* ---- devices.c ---- */

int card_of_device(CUdevice device);
int card_of_handle(nvmlDevice_t device);

/* Of the calling thread's context; NO_CARD, if it has none. */
int current_card(void);

/* Whether it is so of any card that this process has used. */
int any_card(int (*is_so)(int card));

/* Returns 0, or -1 where the driver does not tell. */
int device_of_stream(CUstream stream, CUdevice *device);

/* Before cuInit: a CUDA_VISIBLE_DEVICES in the host's numbers becomes UUIDs. */
void translate_visible_devices(void);

/* Position of the card among those that the container has, by NVML; NO_PLACE where that does not know it. */
#define NO_PLACE (-1)
int position_of_card(int card);

void forget_devices(void);

/* NVML's own for the card. Returns 0, or -1 where it does not know it. */
int find_handle(int card, nvmlDevice_t *device);

/* ---- measuring.c ---- */

/* What NVML says that this process holds of the card. Returns 0, or -1 where it does not know the process. What others
   of the container hold beyond their charges is noted in the region; for a process without a context, by the second. */
int measure_own(int card, uint64_t *bytes);
void measure_others(int card);
void forget_processes(void);

/* The same, or, where it does not know the process, what all hold. */
typedef struct {
    int is_own;
    uint64_t bytes;
} use_t;
use_t measure_use(int card);

#endif
