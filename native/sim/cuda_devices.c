/* The driver itself and the cards that it shows: how many, which, and what they are. */
#define _GNU_SOURCE
#include "cuda.h"
#include "selecting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEWEST_VERSION 13000
#define VERSION_VARIABLE "TESSERA_SIM_DRIVER"
#define PROCESS_VARIABLE "CUDA_VISIBLE_DEVICES"

driver_t driver = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void forget_in_child(void) {
    memset(&driver, 0, sizeof driver);
    pthread_mutex_init(&driver.mutex, NULL);
    forget_contexts();
    forget_pools();
}

int driver_version(void) {
    const char *chosen = getenv(VERSION_VARIABLE);
    return chosen && atoi(chosen) > 0 ? atoi(chosen) : NEWEST_VERSION;
}

static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;

static void install_fork_handler(void) {
    pthread_atfork(NULL, NULL, forget_in_child);
}

static void choose_cards(void) {
    const card_t *given[MACHINE_MOST_CARDS];
    int chosen[MACHINE_MOST_CARDS], count = machine_card_count();
    for (int position = 0; position < count; position++)
        given[position] = machine_card(position);
    driver.count = select_for_process(getenv(PROCESS_VARIABLE), given, count, chosen);
    for (int device = 0; device < driver.count; device++)
        driver.cards[device] = given[chosen[device]];
}

API CUresult cuInit(unsigned int flags) {
    if (flags != 0)
        return INVALID_VALUE;
    pthread_once(&fork_handler_once, install_fork_handler);
    pthread_mutex_lock(&driver.mutex);
    if (!driver.is_ready && machine_open() == 0) {
        choose_cards();
        driver.is_ready = driver.count > 0;
    }
    CUresult result = driver.is_ready ? SUCCESS : NO_DEVICE;
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

CUresult find_card(CUdevice device, const card_t **card) {
    if (!driver.is_ready)
        return NOT_INITIALIZED;
    if (device < 0 || device >= driver.count)
        return INVALID_DEVICE;
    *card = driver.cards[device];
    return SUCCESS;
}

API CUresult cuDriverGetVersion(int *version) {
    if (version == NULL)
        return INVALID_VALUE;
    *version = driver_version();
    return SUCCESS;
}

API CUresult cuDeviceGetCount(int *count) {
    if (!driver.is_ready)
        return NOT_INITIALIZED;
    if (count == NULL)
        return INVALID_VALUE;
    *count = driver.count;
    return SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    const card_t *card;
    CUresult result = device ? find_card(ordinal, &card) : INVALID_VALUE;
    if (result == SUCCESS)
        *device = ordinal;
    return result;
}

API CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    const card_t *card;
    CUresult result = name && length > 0 ? find_card(device, &card) : INVALID_VALUE;
    if (result == SUCCESS)
        snprintf(name, (size_t)length, "%s", card->name);
    return result;
}

API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    const card_t *card;
    CUresult result = uuid ? find_card(device, &card) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    const char *digits = card->uuid + strlen("GPU-");
    for (int byte = 0; byte < 16; byte++) {
        unsigned int value = 0;
        digits += *digits == '-';
        sscanf(digits, "%2x", &value);
        uuid->bytes[byte] = (char)value;
        digits += 2;
    }
    return SUCCESS;
}

API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    return cuDeviceGetUuid(uuid, device);
}

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    const card_t *card;
    CUresult result = bytes ? find_card(device, &card) : INVALID_VALUE;
    if (result == SUCCESS)
        *bytes = card->memory_bytes;
    return result;
}

API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    const card_t *card;
    CUresult result = value ? find_card(device, &card) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    switch (attribute) {
    case 1: /* threads per block */
        *value = 1024;
        return SUCCESS;
    case 10: /* warp size */
        *value = 32;
        return SUCCESS;
    case 16:
        *value = card->multiprocessors;
        return SUCCESS;
    case 33: /* PCI bus */
        *value = card->index + 1;
        return SUCCESS;
    case 41: /* unified addressing */
        *value = 1;
        return SUCCESS;
    case 75:
        *value = card->compute_major;
        return SUCCESS;
    case 76:
        *value = card->compute_minor;
        return SUCCESS;
    default: /* what a simulated card does not have */
        *value = 0;
        return SUCCESS;
    }
}

static const struct {
    CUresult code;
    const char *name, *sentence;
} errors[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
};

#define ERROR_COUNT ((int)(sizeof errors / sizeof *errors))

/* Its place in the table, or one after the last. */
static int place_of(CUresult code) {
    int place = 0;
    while (place < ERROR_COUNT && errors[place].code != code)
        place++;
    return place;
}

API CUresult cuGetErrorName(CUresult code, const char **name) {
    int place = place_of(code);
    *name = place < ERROR_COUNT ? errors[place].name : NULL;
    return *name ? SUCCESS : INVALID_VALUE;
}

API CUresult cuGetErrorString(CUresult code, const char **sentence) {
    int place = place_of(code);
    *sentence = place < ERROR_COUNT ? errors[place].sentence : NULL;
    return *sentence ? SUCCESS : INVALID_VALUE;
}
