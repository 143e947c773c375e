/* Which card is meant: by a number of CUDA's, a handle of NVML's, or a number of the host's. A card is its UUID. */
#define _GNU_SOURCE
#include "tessera.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_LIST 8192

static _Atomic int known[MOST_DEVICES];         /* by device; the card's number and one, 0 where not yet asked */

static _Atomic(nvmlDevice_t) handles[MOST_CARDS];
static _Atomic int known_count;

void forget_devices(void) {
    atomic_store(&known_count, 0);
    for (int device = 0; device < MOST_DEVICES; device++)
        atomic_store(&known[device], 0);
    for (int card = 0; card < MOST_CARDS; card++)
        atomic_store(&handles[card], NULL);
}

/* The newer entry knows parts of a card by UUIDs of their own, the older one does not. */
static int read_uuid(CUdevice device, char *text) {
    CUuuid whole, part;
    int has_whole = real.cuDeviceGetUuid && real.cuDeviceGetUuid(&whole, device) == CUDA_SUCCESS;
    int has_part = real.cuDeviceGetUuid_v2 && real.cuDeviceGetUuid_v2(&part, device) == CUDA_SUCCESS;
    if (!has_whole && !has_part)
        return -1;
    int is_part = has_whole && has_part && memcmp(&whole, &part, sizeof whole) != 0;
    const unsigned char *b = has_part ? part.bytes : whole.bytes;
    snprintf(text, UUID_LENGTH, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             is_part ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
             b[13], b[14], b[15]);
    return 0;
}

int card_of_device(CUdevice device) {
    char uuid[UUID_LENGTH];
    if (load_cuda() || device < 0 || device >= MOST_DEVICES)
        return NO_CARD;
    int card = atomic_load_explicit(&known[device], memory_order_acquire) - 1;
    if (card != NO_CARD || read_uuid(device, uuid))
        return card;
    card = region_card(uuid);
    if (atomic_exchange_explicit(&known[device], card + 1, memory_order_acq_rel) == 0)
        atomic_fetch_add(&known_count, 1);
    return card;
}

int any_card(int (*is_so)(int card)) {
    for (int device = 0; device < MOST_DEVICES; device++) {
        int card = atomic_load_explicit(&known[device], memory_order_acquire) - 1;
        if (card != NO_CARD && is_so(card))
            return 1;
    }
    return 0;
}

int current_card(void) {
    CUdevice device;
    if (load_cuda() || real.cuCtxGetDevice == NULL || real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return NO_CARD;
    return card_of_device(device);
}

/* A stream may be of another card than the current one, but only in a process that uses several. */
int device_of_stream(CUstream stream, CUdevice *device) {
    CUcontext current = NULL, own = NULL;
    if (load_cuda() || real.cuCtxGetDevice == NULL)
        return -1;
    int is_elsewhere = atomic_load(&known_count) > 1 && stream > PER_THREAD_STREAM && real.cuStreamGetCtx &&
                       real.cuStreamGetCtx(stream, &own) == CUDA_SUCCESS &&
                       real.cuCtxGetCurrent(&current) == CUDA_SUCCESS && own != current &&
                       real.cuCtxSetCurrent(own) == CUDA_SUCCESS;
    CUresult result = real.cuCtxGetDevice(device);
    if (is_elsewhere)
        real.cuCtxSetCurrent(current);
    return result == CUDA_SUCCESS ? 0 : -1;
}

/* ---- by NVML -------------------------------------------------------------------------------------------------- */

static int has_nvml(void) {
    return load_nvml() == 0 && real.nvmlInit_v2 && real.nvmlDeviceGetHandleByUUID && real.nvmlDeviceGetUUID &&
           real.nvmlInit_v2() == NVML_SUCCESS;
}

/* A part of a card may be known here by the name of a card (is_same_card). */
int find_handle(int card, nvmlDevice_t *device) {
    char other[UUID_LENGTH];
    *device = atomic_load(&handles[card]);
    if (*device)
        return 0;
    if (!has_nvml())
        return -1;
    snprintf(other, sizeof other, "%s%s", strncmp(region_uuid(card), "GPU", 3) ? "GPU" : "MIG", region_uuid(card) + 3);
    if (real.nvmlDeviceGetHandleByUUID(region_uuid(card), device) != NVML_SUCCESS &&
        real.nvmlDeviceGetHandleByUUID(other, device) != NVML_SUCCESS)
        return -1;
    atomic_store(&handles[card], *device);
    return 0;
}

int card_of_handle(nvmlDevice_t device) {
    char uuid[96];
    if (real.nvmlDeviceGetUUID == NULL || real.nvmlDeviceGetUUID(device, uuid, sizeof uuid) != NVML_SUCCESS)
        return NO_CARD;
    return strlen(uuid) < UUID_LENGTH ? region_card(uuid) : NO_CARD;
}

int position_of_card(int card) {
    nvmlDevice_t device;
    unsigned int index;
    if (find_handle(card, &device) || real.nvmlDeviceGetIndex == NULL ||
        real.nvmlDeviceGetIndex(device, &index) != NVML_SUCCESS)
        return NO_PLACE;
    return (int)index;
}

/* ---- numbers of the host -------------------------------------------------------------------------------------- */

static int uuid_of_minor(unsigned long minor, unsigned int count, char *uuid, unsigned int room) {
    nvmlDevice_t device;
    unsigned int found;
    for (unsigned int index = 0; index < count; index++)
        if (real.nvmlDeviceGetHandleByIndex_v2(index, &device) == NVML_SUCCESS &&
            real.nvmlDeviceGetMinorNumber(device, &found) == NVML_SUCCESS && found == minor)
            return real.nvmlDeviceGetUUID(device, uuid, room) == NVML_SUCCESS ? 0 : -1;
    return -1;
}

/* Only numbers, and one of them too large for the cards that are here: otherwise the list is as it should be. A
   negative one ends it. */
static int is_of_host(const char *list, unsigned int count) {
    int is_beyond = 0;
    for (const char *entry = list; *entry != '\0' && *entry != '-';) {
        char *end;
        if (*entry < '0' || *entry > '9')
            return 0;
        is_beyond |= strtoul(entry, &end, 10) >= count;
        if (*end != '\0' && *end != ',')
            return 0;
        entry = *end == ',' ? end + 1 : end;
    }
    return is_beyond;
}

static int has_large_number(const char *list) {
    return list != NULL && strlen(list) < LONGEST_LIST / UUID_LENGTH && is_of_host(list, 1);
}

void translate_visible_devices(void) {
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    char translated[LONGEST_LIST], uuid[96];
    unsigned int count;
    size_t length = 0;
    if (!has_large_number(list) || !has_nvml() || real.nvmlDeviceGetCount_v2 == NULL ||
        real.nvmlDeviceGetMinorNumber == NULL || real.nvmlDeviceGetHandleByIndex_v2 == NULL ||
        real.nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS || !is_of_host(list, count))
        return;
    for (const char *entry = list; *entry != '\0' && *entry != '-';
         entry += strspn(entry, "0123456789"), entry += *entry == ',') {
        if (uuid_of_minor(strtoul(entry, NULL, 10), count, uuid, sizeof uuid))
            return;
        length += (size_t)snprintf(translated + length, sizeof translated - length, "%s%s", length ? "," : "", uuid);
    }
    setenv("CUDA_VISIBLE_DEVICES", translated, 1);
}
