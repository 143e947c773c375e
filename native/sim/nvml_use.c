/* NVML's figures of use: of memory and of time, by card and by process. */
#define _GNU_SOURCE
#include "../nvml_types.h"
#include "card_time.h"
#include "nvml.h"

#include <stdlib.h>
#include <time.h>

#define HIDING_VARIABLE "TESSERA_SIM_NO_PROCESSES"      /* as in containers, where NVML lists none */
#define RATE_WINDOW_NS 200000000
#define SAMPLE_WINDOW_NS 1000000000
#define NO_INSTANCE (-1u)

/* ---- of a card ------------------------------------------------------------------------------------------------ */

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    nvmlReturn_t result = check(device, memory);
    if (result != SUCCESS)
        return result;
    unsigned long long used = machine_used(device);
    *memory = (nvmlMemory_t){device->memory_bytes, device->memory_bytes - used, used};
    return SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    nvmlReturn_t result = check(device, memory);
    if (result != SUCCESS)
        return result;
    unsigned long long used = machine_used(device);
    *memory = (nvmlMemory_v2_t){memory->version, device->memory_bytes, 0, device->memory_bytes - used, used};
    return SUCCESS;
}

/* Only who asks for it takes part in the time of cards. */
static int busy_thousandths(nvmlDevice_t device, int slot, int64_t window_ns) {
    return time_join() ? 0 : time_busy(device, slot, time_now(), window_ns);
}

API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    nvmlReturn_t result = check(device, rates);
    if (result != SUCCESS)
        return result;
    rates->gpu = (unsigned int)busy_thousandths(device, NO_SLOT, RATE_WINDOW_NS) / 10;
    rates->memory = (unsigned int)(100 * machine_used(device) / device->memory_bytes);
    return SUCCESS;
}

/* ---- of processes --------------------------------------------------------------------------------------------- */

static unsigned int list_tenants(nvmlDevice_t device, tenant_t *tenants) {
    return getenv(HIDING_VARIABLE) ? 0 : (unsigned int)machine_tenants(device, tenants, MACHINE_MOST_PROCESSES);
}

API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                         nvmlProcessInfo_t *processes) {
    tenant_t tenants[MACHINE_MOST_PROCESSES];
    nvmlReturn_t result = check(device, count);
    if (result != SUCCESS)
        return result;
    if (*count > 0 && processes == NULL)
        return INVALID_ARGUMENT;
    unsigned int room = *count;
    *count = list_tenants(device, tenants);
    if (*count > room)
        return INSUFFICIENT_SIZE;
    for (unsigned int one = 0; one < *count; one++)
        processes[one] = (nvmlProcessInfo_t){(unsigned int)tenants[one].pid, tenants[one].bytes, NO_INSTANCE,
                                             NO_INSTANCE};
    return SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                         nvmlProcessInfo_t *processes) {
    return nvmlDeviceGetComputeRunningProcesses_v3(device, count, processes);
}

API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                      nvmlProcessInfo_v1_t *processes) {
    nvmlProcessInfo_t newer[MACHINE_MOST_PROCESSES];
    unsigned int found = MACHINE_MOST_PROCESSES;
    nvmlReturn_t result = check(device, count);
    if (result == SUCCESS)
        result = nvmlDeviceGetComputeRunningProcesses_v3(device, &found, newer);
    if (result != SUCCESS)
        return result;
    if (*count > 0 && processes == NULL)
        return INVALID_ARGUMENT;
    unsigned int room = *count;
    *count = found;
    if (found > room)
        return INSUFFICIENT_SIZE;
    for (unsigned int one = 0; one < found; one++)
        processes[one] = (nvmlProcessInfo_v1_t){newer[one].pid, newer[one].used};
    return SUCCESS;
}

/* Simulated cards draw nothing, and have no MPS. */
#define NO_PROCESSES(name)                                                                                             \
    API nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, void *processes) {                                 \
        (void)processes;                                                                                               \
        nvmlReturn_t result = check(device, count);                                                                    \
        if (result == SUCCESS)                                                                                         \
            *count = 0;                                                                                                \
        return result;                                                                                                 \
    }

NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

static unsigned long long wall_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

/* One sample of the last second for each process that has been busy in it. */
static unsigned int take_samples(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples) {
    tenant_t tenants[MACHINE_MOST_PROCESSES];
    unsigned int count = list_tenants(device, tenants), found = 0;
    for (unsigned int one = 0; one < count; one++) {
        int busy = busy_thousandths(device, tenants[one].slot, SAMPLE_WINDOW_NS);
        unsigned int memory = (unsigned int)(100 * tenants[one].bytes / device->memory_bytes);
        if (busy > 0)
            samples[found++] = (nvmlProcessUtilizationSample_t){(unsigned int)tenants[one].pid, wall_us(),
                                                                (unsigned int)(busy + 5) / 10, memory, 0, 0};
    }
    return found;
}

API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                 unsigned int *count, unsigned long long since_us) {
    nvmlProcessUtilizationSample_t taken[MACHINE_MOST_PROCESSES];
    nvmlReturn_t result = check(device, count);
    if (result != SUCCESS)
        return result;
    unsigned int room = samples ? *count : 0;
    *count = since_us < wall_us() ? take_samples(device, taken) : 0;
    if (*count == 0)
        return NOT_FOUND;
    if (*count > room)
        return INSUFFICIENT_SIZE;
    for (unsigned int one = 0; one < *count; one++)
        samples[one] = taken[one];
    return SUCCESS;
}
