/* libcuda.so.1 over simulated cards: enough of the driver's interface to find cards and to fill their memory.

   Device memory is address space of this process, reserved and not backed until somebody copies into it, so that a
   card of 80 GB costs nothing to fill. What counts against the card is counted in `machine`. */
#define _GNU_SOURCE
#include "machine.h"
#include "selecting.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define API __attribute__((visibility("default")))
#define DRIVER_VERSION 13000
#define PROCESS_VARIABLE "CUDA_VISIBLE_DEVICES"
#define DEEPEST_STACK 32
#define SMALL_GRAIN ((size_t)512)
#define LARGE_GRAIN ((size_t)2 << 20)
#define LARGE ((size_t)1 << 20)

typedef enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NOT_FOUND = 500,
} CUresult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct {
    char bytes[16];
} CUuuid;

typedef struct context {
    const card_t *card;
    CUdevice device;
    int uses;                   /* of the primary context of a device; others have one */
} *CUcontext;

typedef struct block {
    CUdeviceptr begin;
    size_t asked, mapped;
    uint64_t charged;
    const card_t *card;
    struct block *next;
} block_t;

static struct {
    pthread_mutex_t mutex;
    int is_ready;
    int count;
    const card_t *cards[MACHINE_MOST_CARDS];
    struct context primary[MACHINE_MOST_CARDS];
    block_t *blocks;
} driver = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Each thread has a stack of contexts; the top one is current. */
static _Thread_local struct {
    CUcontext contexts[DEEPEST_STACK];
    int depth;
} stack;

static CUcontext current(void) {
    return stack.depth > 0 ? stack.contexts[stack.depth - 1] : NULL;
}

static void forget_in_child(void) {
    memset(&driver, 0, sizeof driver);
    pthread_mutex_init(&driver.mutex, NULL);
    stack.depth = 0;
}

static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;

static void install_fork_handler(void) {
    pthread_atfork(NULL, NULL, forget_in_child);
}

/* ---- devices -------------------------------------------------------------------------------------------------- */

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

/* The card behind a device, or the reason why there is none. */
static CUresult find_card(CUdevice device, const card_t **card) {
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
    *version = DRIVER_VERSION;
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

/* ---- contexts ------------------------------------------------------------------------------------------------- */

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    const card_t *card;
    CUresult result = context ? find_card(device, &card) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    pthread_mutex_lock(&driver.mutex);
    CUcontext primary = &driver.primary[device];
    if (primary->uses == 0 && machine_take(card, card->context_bytes)) {
        result = OUT_OF_MEMORY;
    } else {
        primary->card = card;
        primary->device = device;
        primary->uses++;
        *context = primary;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

static void free_blocks_of(const card_t *card);

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    const card_t *card;
    CUresult result = find_card(device, &card);
    if (result != SUCCESS)
        return result;
    pthread_mutex_lock(&driver.mutex);
    CUcontext primary = &driver.primary[device];
    if (primary->uses == 0) {
        result = INVALID_CONTEXT;
    } else if (--primary->uses == 0) {
        free_blocks_of(card);
        machine_give_back(card, card->context_bytes);
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

API CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    return cuDevicePrimaryCtxRelease_v2(device);
}

API CUresult cuCtxPushCurrent_v2(CUcontext context) {
    if (!driver.is_ready)
        return NOT_INITIALIZED;
    if (context == NULL || stack.depth == DEEPEST_STACK)
        return INVALID_CONTEXT;
    stack.contexts[stack.depth++] = context;
    return SUCCESS;
}

API CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    if (current() == NULL)
        return INVALID_CONTEXT;
    if (context)
        *context = current();
    stack.depth--;
    return SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext context) {
    stack.depth -= stack.depth > 0;
    return context ? cuCtxPushCurrent_v2(context) : SUCCESS;
}

API CUresult cuCtxGetCurrent(CUcontext *context) {
    if (context == NULL)
        return INVALID_VALUE;
    *context = current();
    return driver.is_ready ? SUCCESS : NOT_INITIALIZED;
}

API CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
    const card_t *card;
    (void)flags;
    CUresult result = context ? find_card(device, &card) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    CUcontext made = calloc(1, sizeof *made);
    if (made == NULL || machine_take(card, card->context_bytes)) {
        free(made);
        return OUT_OF_MEMORY;
    }
    *made = (struct context){.card = card, .device = device, .uses = 1};
    *context = made;
    return cuCtxPushCurrent_v2(made);
}

API CUresult cuCtxDestroy_v2(CUcontext context) {
    if (context == NULL || context == &driver.primary[context->device])
        return INVALID_CONTEXT;
    if (current() == context)
        stack.depth--;
    machine_give_back(context->card, context->card->context_bytes);
    free(context);
    return SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *device) {
    if (current() == NULL)
        return INVALID_CONTEXT;
    *device = current()->device;
    return SUCCESS;
}

API CUresult cuCtxSynchronize(void) {
    return current() ? SUCCESS : INVALID_CONTEXT;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

/* What the driver would take for it: small ones share its pages, large ones have pages of their own. */
static uint64_t charge_of(size_t bytes) {
    size_t grain = bytes < LARGE ? SMALL_GRAIN : LARGE_GRAIN;
    return bytes > SIZE_MAX - grain ? UINT64_MAX : (bytes + grain - 1) / grain * grain;
}

static CUresult no_context(void) {
    return driver.is_ready ? INVALID_CONTEXT : NOT_INITIALIZED;
}

API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    if (pointer == NULL || bytes == 0)
        return INVALID_VALUE;
    if (current() == NULL)
        return no_context();
    const card_t *card = current()->card;
    uint64_t charged = charge_of(bytes);
    block_t *block = malloc(sizeof *block);
    if (block == NULL || machine_take(card, charged)) {
        free(block);
        return OUT_OF_MEMORY;
    }
    void *space = mmap(NULL, charged, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) {
        machine_give_back(card, charged);
        free(block);
        return OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&driver.mutex);
    *block = (block_t){(CUdeviceptr)(uintptr_t)space, bytes, charged, charged, card, driver.blocks};
    driver.blocks = block;
    pthread_mutex_unlock(&driver.mutex);
    *pointer = block->begin;
    return SUCCESS;
}

static void free_block(block_t *block) {
    munmap((void *)(uintptr_t)block->begin, block->mapped);
    machine_give_back(block->card, block->charged);
    free(block);
}

/* With the driver locked. */
static void free_blocks_of(const card_t *card) {
    for (block_t **link = &driver.blocks; *link != NULL;) {
        block_t *block = *link;
        if (block->card != card) {
            link = &block->next;
            continue;
        }
        *link = block->next;
        free_block(block);
    }
}

API CUresult cuMemFree_v2(CUdeviceptr pointer) {
    if (pointer == 0)
        return SUCCESS;
    CUresult result = driver.is_ready ? INVALID_VALUE : NOT_INITIALIZED;
    pthread_mutex_lock(&driver.mutex);
    for (block_t **link = &driver.blocks; *link != NULL; link = &(*link)->next) {
        block_t *block = *link;
        if (block->begin != pointer)
            continue;
        *link = block->next;
        free_block(block);
        result = SUCCESS;
        break;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    if (free_bytes == NULL || total_bytes == NULL)
        return INVALID_VALUE;
    if (current() == NULL)
        return no_context();
    *total_bytes = current()->card->memory_bytes;
    *free_bytes = *total_bytes - machine_used(current()->card);
    return SUCCESS;
}

API CUresult cuMemGetAddressRange_v2(CUdeviceptr *begin, size_t *bytes, CUdeviceptr pointer) {
    CUresult result = NOT_FOUND;
    pthread_mutex_lock(&driver.mutex);
    for (block_t *block = driver.blocks; block != NULL && result != SUCCESS; block = block->next) {
        if (pointer < block->begin || pointer >= block->begin + block->asked)
            continue;
        if (begin)
            *begin = block->begin;
        if (bytes)
            *bytes = block->asked;
        result = SUCCESS;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

/* Whether all of it is in one block. */
static int is_device_memory(CUdeviceptr pointer, size_t bytes) {
    CUdeviceptr begin;
    size_t length;
    return cuMemGetAddressRange_v2(&begin, &length, pointer) == SUCCESS && bytes <= begin + length - pointer;
}

API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    if (!is_device_memory(to, bytes))
        return INVALID_VALUE;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return SUCCESS;
}

API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    if (!is_device_memory(from, bytes))
        return INVALID_VALUE;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return SUCCESS;
}

API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes) {
    if (!is_device_memory(to, bytes))
        return INVALID_VALUE;
    memset((void *)(uintptr_t)to, value, bytes);
    return SUCCESS;
}

/* ---- errors --------------------------------------------------------------------------------------------------- */

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

API CUresult cuGetErrorName(CUresult code, const char **name) {
    for (size_t entry = 0; entry < sizeof errors / sizeof *errors; entry++)
        if (errors[entry].code == code) {
            *name = errors[entry].name;
            return SUCCESS;
        }
    *name = NULL;
    return INVALID_VALUE;
}

API CUresult cuGetErrorString(CUresult code, const char **sentence) {
    for (size_t entry = 0; entry < sizeof errors / sizeof *errors; entry++)
        if (errors[entry].code == code) {
            *sentence = errors[entry].sentence;
            return SUCCESS;
        }
    *sentence = NULL;
    return INVALID_VALUE;
}
