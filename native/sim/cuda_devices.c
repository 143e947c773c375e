/* The driver itself and the cards that it shows: how many, which, and what they are. */
#define _GNU_SOURCE
#include "cuda_blocks.h"
#include "cuda_graphs.h"
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
    forget_host_memory();
    forget_graph_memory();
    forget_captures();
    forget_queue();
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
    if (!driver.is_ready && machine_open() == 0 && time_join() == 0) {
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

API CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags) {
    int status;
    return look_up(name, entry, version, flags, &status);
}

API CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status) {
    int ignored;
    return look_up(name, entry, version, flags, status ? status : &ignored);
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

/* The same for all simulated cards, by the driver's number. What is not here a simulated card does not have. */
static const struct {
    int number, value;
} attributes[] = {
    {1, 1024},          /* threads in a block */
    {2, 1024},          /* by x */
    {3, 1024},          /* by y */
    {4, 64},            /* by z */
    {5, 0x7fffffff},    /* blocks in a grid, by x */
    {6, 65535},         /* by y */
    {7, 65535},         /* by z */
    {8, 49152},         /* shared memory of a block */
    {10, 32},           /* threads in a warp */
    {15, 1},            /* copies while kernels run */
    {19, 1},            /* host memory can be mapped */
    {31, 1},            /* concurrent kernels */
    {39, 2048},         /* threads on a multiprocessor */
    {40, 2},            /* copy engines */
    {41, 1},            /* unified addressing */
    {78, 1},            /* stream priorities */
    {83, 1},            /* managed memory */
    {89, 1},            /* the host can use managed memory meanwhile */
    {95, 1},            /* cooperative launches */
    {99, 1},            /* host memory can be registered */
    {102, 1},           /* memory by handle and address */
    {103, 1},           /* handles that are files */
    {115, 1},           /* pools */
    {119, 1},           /* what handles pools have: files */
    {122, 1},           /* waits for values */
};

API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    const card_t *card;
    CUresult result = value ? find_card(device, &card) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    for (size_t row = 0; row < sizeof attributes / sizeof *attributes; row++)
        if (attributes[row].number == attribute) {
            *value = attributes[row].value;
            return SUCCESS;
        }
    *value = attribute == 16 ? card->multiprocessors : attribute == 33 ? card->index + 1
             : attribute == 75 ? card->compute_major : attribute == 76 ? card->compute_minor : 0;
    return SUCCESS;
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
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "too many blocks in cooperative launch"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would result in a merge of separate capture sequences"},
    {CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"},
    {CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
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
