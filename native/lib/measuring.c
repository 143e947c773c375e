/* How much of a card this process has by NVML, and how much others have that nobody was charged with: an importer
   sleeps, whose exporter has freed the memory. Which of the listed processes is which, the node's agent knows best. */
#define _GNU_SOURCE
#include "tessera.h"

#include <pthread.h>
#include <unistd.h>

#define MOST_PROCESSES 1024
#define NOT_SAID UINT64_MAX
#define AGENT_PERIOD_MS 10000
#define AGENT_PATIENCE_MS 5     /* an allocation waits for it */

/* As NVML lists them; one thread asks at a time. */
static struct {
    pthread_mutex_t mutex;
    nvmlProcessInfo_t rows[MOST_PROCESSES];
    unsigned int count;
    uint64_t held_before[REGION_SLOTS];         /* by the slots, before NVML was asked */
} processes = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void forget_processes(void) {
    pthread_mutex_init(&processes.mutex, NULL);
}

/* Under the number of the node, where the agent has said it. It may have been away when this process joined. */
static uint64_t host_pid(void) {
    static _Atomic uint64_t asked_ms;
    uint64_t pid = atomic_load(&region_here.own->host_pid), now_ms = coarse_ms(), before_ms = atomic_load(&asked_ms);
    if (pid || now_ms - before_ms < AGENT_PERIOD_MS)
        return pid;
    atomic_store(&asked_ms, now_ms);
    if (before_ms == 0)
        return 0;
    pid = ask_host_pid(AGENT_PATIENCE_MS);
    atomic_store(&region_here.own->host_pid, pid);
    return pid;
}

/* Returns 0, or -1 where no process or several of that number are listed: then one of them is of another container. */
static int find_process(uint64_t pid, uint64_t *bytes) {
    unsigned int found = 0;
    for (unsigned int one = 0; one < processes.count; one++)
        if (processes.rows[one].pid == pid && processes.rows[one].used != NOT_SAID) {
            *bytes = processes.rows[one].used;
            found++;
        }
    return found == 1 ? 0 : -1;
}

typedef nvmlReturn_t list_t(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *rows);

static int list_processes(list_t *list, nvmlDevice_t device, int card) {
    uint32_t used = region_slot_count();
    for (uint32_t slot = 0; slot < used && card < REGION_CARDS; slot++)
        processes.held_before[slot] = atomic_load(&region_here.file->slots[slot].parts[card].bytes);
    processes.count = MOST_PROCESSES;
    return list(device, &processes.count, processes.rows) == NVML_SUCCESS ? 0 : -1;
}

/* A charge comes before its memory and goes after it, so the most of what was held before and after counts. */
static uint64_t count_unclaimed(int card) {
    uint64_t sum = 0, has;
    uint32_t used = region_slot_count();
    for (uint32_t slot = 0; slot < used && card < REGION_CARDS; slot++) {
        const region_slot_t *other = &region_here.file->slots[slot];
        uint64_t pid = atomic_load(&other->host_pid) ? atomic_load(&other->host_pid) : atomic_load(&other->pid);
        uint64_t before = processes.held_before[slot], after = atomic_load(&other->parts[card].bytes);
        uint64_t held = before > after ? before : after;
        if (other != region_here.own && pid && held && find_process(pid, &has) == 0 && has > held)
            sum += has - held;
    }
    return sum;
}

/* What others have more than before is believed when they still have it at a second look. */
static void note_unclaimed(list_t *list, nvmlDevice_t device, int card) {
    if (card >= REGION_CARDS)
        return;
    _Atomic uint64_t *noted = &region_here.file->cards[card].unclaimed_bytes;
    uint64_t found = count_unclaimed(card), again = found;
    if (found > atomic_load(noted))
        again = list_processes(list, device, card) == 0 ? count_unclaimed(card) : 0;
    atomic_store(noted, found < again ? found : again);
}

/* Both versions have the same rows. */
static list_t *newest(list_t *newer, list_t *older) {
    return newer ? newer : older;
}

static list_t *list_of_all(void) {
    return newest(real.nvmlDeviceGetComputeRunningProcesses_v3, real.nvmlDeviceGetComputeRunningProcesses_v2);
}

static list_t *list_of_mps(void) {
    return newest(real.nvmlDeviceGetMPSComputeRunningProcesses_v3, real.nvmlDeviceGetMPSComputeRunningProcesses_v2);
}

static int find_own(list_t *list, nvmlDevice_t device, int card, uint64_t pid, uint64_t *bytes) {
    if (list == NULL || list_processes(list, device, card))
        return -1;
    if ((pid == 0 || find_process(pid, bytes)) && find_process((uint64_t)getpid(), bytes))
        return -1;
    note_unclaimed(list, device, card);
    return 0;
}

/* Clients of MPS have a list of their own. */
int measure_own(int card, uint64_t *bytes) {
    nvmlDevice_t device;
    uint64_t pid = host_pid();
    if (find_handle(card, &device))
        return -1;
    pthread_mutex_lock(&processes.mutex);
    int result = find_own(list_of_all(), device, card, pid, bytes);
    if (result)
        result = find_own(list_of_mps(), device, card, pid, bytes);
    pthread_mutex_unlock(&processes.mutex);
    return result;
}

void measure_others(int card) {
    nvmlDevice_t device;
    if (find_handle(card, &device))
        return;
    list_t *list = list_of_all();
    pthread_mutex_lock(&processes.mutex);
    if (list && list_processes(list, device, card) == 0)
        note_unclaimed(list, device, card);
    pthread_mutex_unlock(&processes.mutex);
}

use_t measure_use(int card) {
    nvmlDevice_t device;
    nvmlMemory_t memory = {0};
    use_t own = {.is_own = 1};
    if (measure_own(card, &own.bytes) == 0)
        return own;
    if (find_handle(card, &device) == 0 && real.nvmlDeviceGetMemoryInfo)
        real.nvmlDeviceGetMemoryInfo(device, &memory);
    return (use_t){.bytes = memory.used};
}
