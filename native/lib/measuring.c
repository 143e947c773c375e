/* How much of a card this process has by NVML. Which of the listed processes it is, the node's agent knows best. */
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
static int find_process(unsigned int count, uint64_t pid, uint64_t *bytes) {
    unsigned int found = 0;
    for (unsigned int one = 0; one < count; one++)
        if (processes.rows[one].pid == pid && processes.rows[one].used != NOT_SAID) {
            *bytes = processes.rows[one].used;
            found++;
        }
    return found == 1 ? 0 : -1;
}

typedef nvmlReturn_t list_t(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *rows);

/* Both versions have the same rows. */
static int find_in(list_t *newer, list_t *older, nvmlDevice_t device, uint64_t pid, uint64_t *bytes) {
    unsigned int count = MOST_PROCESSES;
    list_t *list = newer ? newer : older;
    if (list == NULL || list(device, &count, processes.rows) != NVML_SUCCESS)
        return -1;
    if (pid && find_process(count, pid, bytes) == 0)
        return 0;
    return find_process(count, (uint64_t)getpid(), bytes);
}

/* Clients of MPS have a list of their own. */
int measure_own(int card, uint64_t *bytes) {
    nvmlDevice_t device;
    uint64_t pid = host_pid();
    if (find_handle(card, &device))
        return -1;
    pthread_mutex_lock(&processes.mutex);
    int result = find_in(real.nvmlDeviceGetComputeRunningProcesses_v3, real.nvmlDeviceGetComputeRunningProcesses_v2,
                         device, pid, bytes);
    if (result)
        result = find_in(real.nvmlDeviceGetMPSComputeRunningProcesses_v3,
                         real.nvmlDeviceGetMPSComputeRunningProcesses_v2, device, pid, bytes);
    pthread_mutex_unlock(&processes.mutex);
    return result;
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
