/* libnvidia-ml.so.1 over simulated cards: what monitors and our own discovery ask a driver.

   A question that a simulated card has no answer to is NOT_SUPPORTED, as it is on cards that lack the feature, and a
   function that is not here is missing, as it is from an older driver. */
#define _GNU_SOURCE
#include "nvml.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER_VERSION "580.00.00"
#define CUDA_VERSION 13000

typedef struct {
    char legacy[16];
    unsigned int domain, bus, device, id, subsystem;
    char bus_id[32];
} nvmlPciInfo_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int users;

/* A child has begun with its parent, and the machine must be looked at anew there. */
static int is_begun(void) {
    return users > 0 && machine_open() == 0;
}

/* ---- the library ---------------------------------------------------------------------------------------------- */

API nvmlReturn_t nvmlInit_v2(void) {
    pthread_mutex_lock(&mutex);
    nvmlReturn_t result = machine_open() ? DRIVER_NOT_LOADED : SUCCESS;
    users += result == SUCCESS;
    pthread_mutex_unlock(&mutex);
    return result;
}

API nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    return nvmlInit_v2();
}

API nvmlReturn_t nvmlShutdown(void) {
    pthread_mutex_lock(&mutex);
    nvmlReturn_t result = users > 0 ? SUCCESS : UNINITIALIZED;
    users -= users > 0;
    pthread_mutex_unlock(&mutex);
    return result;
}

API const char *nvmlErrorString(nvmlReturn_t code) {
    switch (code) {
    case SUCCESS:
        return "Success";
    case UNINITIALIZED:
        return "Uninitialized";
    case INVALID_ARGUMENT:
        return "Invalid Argument";
    case NOT_SUPPORTED:
        return "Not Supported";
    case NOT_FOUND:
        return "Not Found";
    case INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case TIMEOUT:
        return "Timeout";
    case UNKNOWN:
        return "Unknown Error";
    }
    return "Unknown Error";
}

static nvmlReturn_t write_text(char *to, unsigned int length, const char *text) {
    if (!is_begun())
        return UNINITIALIZED;
    if (to == NULL)
        return INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return INSUFFICIENT_SIZE;
    strcpy(to, text);
    return SUCCESS;
}

API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    return write_text(version, length, DRIVER_VERSION);
}

API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    return write_text(version, length, "13." DRIVER_VERSION);
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    if (version == NULL)
        return INVALID_ARGUMENT;
    *version = CUDA_VERSION;
    return is_begun() ? SUCCESS : UNINITIALIZED;
}

/* ---- cards ---------------------------------------------------------------------------------------------------- */

nvmlReturn_t check_begun(void) {
    return is_begun() ? SUCCESS : UNINITIALIZED;
}

nvmlReturn_t check(nvmlDevice_t device, const void *out) {
    if (!is_begun())
        return UNINITIALIZED;
    return device && out ? SUCCESS : INVALID_ARGUMENT;
}

API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    if (!is_begun())
        return UNINITIALIZED;
    if (count == NULL)
        return INVALID_ARGUMENT;
    *count = (unsigned int)machine_card_count();
    return SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    if (!is_begun())
        return UNINITIALIZED;
    if (device == NULL || index >= (unsigned int)machine_card_count())
        return INVALID_ARGUMENT;
    *device = machine_card((int)index);
    return SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    if (!is_begun())
        return UNINITIALIZED;
    if (uuid == NULL || device == NULL)
        return INVALID_ARGUMENT;
    for (int position = 0; position < machine_card_count(); position++)
        if (strcmp(machine_card(position)->uuid, uuid) == 0) {
            *device = machine_card(position);
            return SUCCESS;
        }
    return NOT_FOUND;
}

API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    nvmlReturn_t result = check(device, index);
    for (int position = 0; result == SUCCESS && position < machine_card_count(); position++)
        if (machine_card(position) == device)
            *index = (unsigned int)position;
    return result;
}

API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
    nvmlReturn_t result = check(device, minor);
    if (result == SUCCESS)
        *minor = (unsigned int)device->index;
    return result;
}

API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
    nvmlReturn_t result = check(device, uuid);
    return result == SUCCESS ? write_text(uuid, length, device->uuid) : result;
}

API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    nvmlReturn_t result = check(device, name);
    return result == SUCCESS ? write_text(name, length, device->name) : result;
}

API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    nvmlReturn_t result = check(device, major && minor ? major : NULL);
    if (result != SUCCESS)
        return result;
    *major = device->compute_major;
    *minor = device->compute_minor;
    return SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    nvmlReturn_t result = check(device, pci);
    if (result != SUCCESS)
        return result;
    *pci = (nvmlPciInfo_t){.bus = (unsigned int)device->index + 1};
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
    snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", pci->bus);
    return SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node) {
    nvmlReturn_t result = check(device, node);
    if (result == SUCCESS)
        *node = (unsigned int)device->numa;
    return result;
}

API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *mode, unsigned int *pending) {
    nvmlReturn_t result = check(device, mode && pending ? mode : NULL);
    return result == SUCCESS ? NOT_SUPPORTED : result;
}

API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, unsigned int *is_active) {
    (void)link;
    nvmlReturn_t result = check(device, is_active);
    return result == SUCCESS ? NOT_SUPPORTED : result;
}
