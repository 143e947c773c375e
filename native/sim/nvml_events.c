/* NVML's events: whoever waits is told what befalls the cards. */
#define _GNU_SOURCE
#include "card_time.h"
#include "faults.h"
#include "nvml.h"

#include <stdlib.h>
#include <time.h>

#define XID_EVENT 8ull
#define LOOK_AGAIN_NS 5000000
#define NO_INSTANCE (-1u)

typedef struct {
    char is_registered[MACHINE_MOST_CARDS];
    off_t seen;
} *nvmlEventSet_t;

typedef struct {
    nvmlDevice_t device;
    unsigned long long type, data;
    unsigned int gpu_instance, compute_instance;
} nvmlEventData_t;

API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    nvmlReturn_t result = set ? check_begun() : INVALID_ARGUMENT;
    if (result != SUCCESS)
        return result;
    *set = calloc(1, sizeof **set);
    if (*set == NULL)
        return UNKNOWN;
    (*set)->seen = faults_end();
    return SUCCESS;
}

API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    nvmlReturn_t result = check_begun();
    if (result == SUCCESS)
        free(set);
    return result;
}

API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    nvmlReturn_t result = check(device, types);
    if (result == SUCCESS)
        *types = XID_EVENT;
    return result;
}

API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    nvmlReturn_t result = check(device, set);
    if (result != SUCCESS)
        return result;
    if (types & ~XID_EVENT)
        return NOT_SUPPORTED;
    set->is_registered[device->index] |= types == XID_EVENT;
    return SUCCESS;
}

static int has_event(nvmlEventSet_t set, nvmlEventData_t *event) {
    const card_t *card;
    int xid;
    while ((xid = faults_next(&set->seen, &card)) != 0)
        if (set->is_registered[card->index]) {
            *event = (nvmlEventData_t){card, XID_EVENT, (unsigned long long)xid, NO_INSTANCE, NO_INSTANCE};
            return 1;
        }
    return 0;
}

API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *event, unsigned int timeout_ms) {
    nvmlReturn_t result = set && event ? check_begun() : INVALID_ARGUMENT;
    if (result != SUCCESS)
        return result;
    int64_t deadline = time_now() + timeout_ms * (int64_t)1000000;
    while (!has_event(set, event)) {
        if (time_now() >= deadline)
            return TIMEOUT;
        nanosleep(&(struct timespec){0, LOOK_AGAIN_NS}, NULL);
    }
    return SUCCESS;
}

API nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *event, unsigned int timeout_ms) {
    return nvmlEventSetWait_v2(set, event, timeout_ms);
}
