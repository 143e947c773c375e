/* How busy the card is, as NVML tells it: with this container's own work, of all that the card could do. What the
   container has used is known from the region where its share is kept to; otherwise NVML's word for the whole card is
   all that there is. Samples of processes are NVML's, of this container's alone, by their numbers in it. */
#define _GNU_SOURCE
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>

#define PERIOD_NS ((int64_t)1000000000)
#define SHORTEST_NS ((int64_t)50000000)

typedef struct {
    int64_t at_ns, used_ns;
} reading_t;

/* What was read before, by card: the older one is what the next is compared with. */
static struct {
    pthread_mutex_t mutex;
    reading_t older[MOST_CARDS], newer[MOST_CARDS];
} readings = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void forget_utilisation(void) {
    pthread_mutex_init(&readings.mutex, NULL);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static reading_t read_card(int card) {
    return (reading_t){now_ns(), (int64_t)atomic_load(&region_figures(card)->gpu_ns)};
}

/* With the mutex. A program that asks for the first time is told of the next moment, because there is no last one. */
static reading_t reading_before(int card) {
    const struct timespec moment = {.tv_nsec = SHORTEST_NS};
    if (readings.newer[card].at_ns == 0) {
        readings.newer[card] = readings.older[card] = read_card(card);
        nanosleep(&moment, NULL);
    }
    if (now_ns() - readings.newer[card].at_ns >= PERIOD_NS) {
        readings.older[card] = readings.newer[card];
        readings.newer[card] = read_card(card);
    }
    return readings.older[card];
}

static unsigned int percent_of(int card) {
    pthread_mutex_lock(&readings.mutex);
    reading_t before = reading_before(card), after = read_card(card);
    pthread_mutex_unlock(&readings.mutex);
    int64_t elapsed = after.at_ns - before.at_ns, used = after.used_ns - before.used_ns;
    int64_t percent = elapsed > 0 ? (100 * used + elapsed / 2) / elapsed : 0;
    return percent > 100 ? 100 : (unsigned int)percent;
}

/* The card, if the region knows what was used of its time. */
static int metered_card(nvmlDevice_t device) {
    int card = card_of_handle(device);
    return card != NO_CARD && compute_limit_of(card).share_percent ? card : NO_CARD;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    if (load_nvml() || real.nvmlDeviceGetUtilizationRates == NULL)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlReturn_t result = real.nvmlDeviceGetUtilizationRates(device, rates);
    int card = result == NVML_SUCCESS ? metered_card(device) : NO_CARD;
    if (card != NO_CARD)
        rates->gpu = percent_of(card);
    return result;
}

/* ---- samples of processes ------------------------------------------------------------------------------------- */

/* The number in this container of a process that NVML knows by `pid`; 0 where it is another's. */
static unsigned int own_number(const holder_t *holders, int count, unsigned int pid) {
    for (int one = 0; one < count; one++)
        if (holders[one].host_pid ? holders[one].host_pid == pid : holders[one].pid == pid)
            return holders[one].pid;
    return 0;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long since_us) {
    holder_t holders[REGION_SLOTS];
    if (load_nvml() || real.nvmlDeviceGetProcessUtilization == NULL)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlReturn_t result = real.nvmlDeviceGetProcessUtilization(device, samples, count, since_us);
    int card = result == NVML_SUCCESS && samples ? card_of_handle(device) : NO_CARD;
    if (card == NO_CARD || limit_of(card) == NO_LIMIT)
        return result;
    int known = region_holders(card, NO_CARD, holders, REGION_SLOTS);
    unsigned int kept = 0;
    for (unsigned int one = 0; one < *count; one++) {
        samples[kept] = samples[one];
        samples[kept].pid = own_number(holders, known, samples[one].pid);
        kept += samples[kept].pid != 0;
    }
    *count = kept;
    return kept ? result : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *wish) {
    holder_t holders[REGION_SLOTS];
    if (load_nvml() || real.nvmlDeviceGetProcessesUtilizationInfo == NULL)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlReturn_t result = real.nvmlDeviceGetProcessesUtilizationInfo(device, wish);
    int card = result == NVML_SUCCESS && wish->rows ? card_of_handle(device) : NO_CARD;
    if (card == NO_CARD || limit_of(card) == NO_LIMIT)
        return result;
    int known = region_holders(card, NO_CARD, holders, REGION_SLOTS);
    unsigned int kept = 0;
    for (unsigned int one = 0; one < wish->count; one++) {
        wish->rows[kept] = wish->rows[one];
        wish->rows[kept].pid = own_number(holders, known, wish->rows[one].pid);
        kept += wish->rows[kept].pid != 0;
    }
    wish->count = kept;
    return kept ? result : NVML_ERROR_NOT_FOUND;
}
