/* Contexts take memory of their card before a program allocates anything. How much, the driver does not say: the first
   process of the container measures it and the others know it from the region. Until it is known nobody else of the
   container gets a context, so nobody can allocate what the first one is about to take. */
#define _GNU_SOURCE
#include "compute.h"
#include "memory.h"

#include <pthread.h>
#include <string.h>

#define GUESSED_BYTES ((uint64_t)520 << 20)     /* where NVML says nothing; an H200's takes 518 MiB */
#define LEAST_LIKELY_BYTES ((uint64_t)64 << 20)
#define MOST_LIKELY_BYTES ((uint64_t)1 << 30)

typedef struct {
    int card;
    uint64_t reserved;
    int is_measuring;           /* alone in the container, if that could be had */
    int is_locked;
    use_t before;
} birth_t;

/* Guards the moments in which a primary context comes and goes. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static CUcontext primaries[MOST_DEVICES];       /* as far as they were made here */
static int retains[MOST_DEVICES];

void forget_contexts(void) {
    pthread_mutex_init(&mutex, NULL);
    memset(primaries, 0, sizeof primaries);
    memset(retains, 0, sizeof retains);
}

static CUresult begin_context(birth_t *birth, int card) {
    *birth = (birth_t){.card = card};
    if (card == NO_CARD)
        return CUDA_SUCCESS;
    if (region_context_bytes(card) == 0) {
        birth->is_locked = region_begin_measuring() == 0;
        birth->is_measuring = region_context_bytes(card) == 0;
        if (birth->is_measuring) {
            birth->before = measure_use(card);
            return CUDA_SUCCESS;
        }
        if (birth->is_locked)
            region_end_measuring();
    }
    birth->reserved = region_context_bytes(card);
    return reserve_pages(card, birth->reserved);
}

/* By what the process has more than before, if NVML knows the process; by what the card has less, if not. Others take
   and give back at the same time, so of the latter only a likely figure is believed. */
static uint64_t measure(const birth_t *birth) {
    use_t after = measure_use(birth->card);
    uint64_t before = after.is_own && !birth->before.is_own ? 0 : birth->before.bytes;
    uint64_t more = after.bytes > before ? round_up(after.bytes - before, PAGE) : 0;
    int is_likely = after.is_own ? more > 0 : more >= LEAST_LIKELY_BYTES && more <= MOST_LIKELY_BYTES;
    return is_likely ? more : GUESSED_BYTES;
}

/* Returns 0, or -1 where the context is more than the container may have, and must be undone. */
static int end_context(birth_t *birth, CUresult result, CUcontext context) {
    int is_refused = 0;
    if (birth->card == NO_CARD)
        return 0;
    if (birth->is_measuring) {
        birth->reserved = result == CUDA_SUCCESS ? measure(birth) : 0;
        if (birth->reserved) {
            region_add(birth->card, birth->reserved);
            region_learn_context_bytes(birth->card, birth->reserved);
        }
        if (birth->is_locked)
            region_end_measuring();
        is_refused = result == CUDA_SUCCESS && region_is_over(birth->card, limit_of(birth->card));
    }
    if (result != CUDA_SUCCESS || is_refused) {
        region_give_back(birth->card, birth->reserved);
        return is_refused ? -1 : 0;
    }
    blocks_put(block_of((uint64_t)(uintptr_t)context, birth->reserved, 0, birth->card, CONTEXT));
    upkeep_begin(birth->card);
    return 0;
}

static void give_back_owned(const block_t *block) {
    give_back_block(block->card, block->bytes);
}

static void end_charge_of(CUcontext context) {
    block_t block;
    if (blocks_drop(CONTEXT, (uint64_t)(uintptr_t)context, &block)) {
        region_give_back(block.card, block.bytes);
        upkeep_end(block.card);
    }
}

/* With the context goes what was allocated in it. */
static void bury_context(CUcontext context) {
    blocks_forget_owned((uint64_t)(uintptr_t)context, give_back_owned);
    bury_leaving(context);
    end_charge_of(context);
}

/* One that is there already. NVML's word for the process has it in it, and is charged with the driver's own; where
   NVML does not know the process it is charged with what contexts are known to take. */
static void adopt(CUcontext context, int card) {
    uint64_t own, known = region_context_bytes(card), bytes = 0;
    if (measure_own(card, &own)) {
        bytes = known ? known : GUESSED_BYTES;
        region_add(card, bytes);
    }
    blocks_put(block_of((uint64_t)(uintptr_t)context, bytes, 0, card, CONTEXT));
    upkeep_begin(card);
}

/* ---- the primary context of a device -------------------------------------------------------------------------- */

static int is_active(CUdevice device) {
    unsigned int flags;
    int active = 0;
    if (real.cuDevicePrimaryCtxGetState == NULL ||
        real.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS)
        return 0;
    return active;
}

static CUresult make_primary(CUcontext *context, CUdevice device, int card) {
    birth_t birth;
    CUresult result = begin_context(&birth, card);
    if (result != CUDA_SUCCESS)
        return result;
    result = CALL(cuDevicePrimaryCtxRetain, context, device);
    if (end_context(&birth, result, result == CUDA_SUCCESS ? *context : NULL)) {
        if (real.cuDevicePrimaryCtxRelease_v2)
            real.cuDevicePrimaryCtxRelease_v2(device);
        return refuse(card, birth.reserved);
    }
    if (result == CUDA_SUCCESS)
        primaries[device] = *context;
    return result;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    int card = card_of_device(device);
    if (card == NO_CARD)
        return CALL(cuDevicePrimaryCtxRetain, context, device);
    pthread_mutex_lock(&mutex);
    CUresult result = is_active(device) ? CALL(cuDevicePrimaryCtxRetain, context, device)
                                        : make_primary(context, device, card);
    if (result == CUDA_SUCCESS && primaries[device] == NULL) {
        primaries[device] = *context;
        if (!upkeep_has_context(card))
            adopt(*context, card);
    }
    retains[device] += result == CUDA_SUCCESS;
    pthread_mutex_unlock(&mutex);
    return result;
}

/* After a release or a reset, which may have been the end of it. */
static CUresult look_after(CUdevice device, CUresult result) {
    if (result != CUDA_SUCCESS || device < 0 || device >= MOST_DEVICES || !primaries[device] || is_active(device))
        return result;
    bury_context(primaries[device]);
    primaries[device] = NULL;
    return result;
}

/* Before a release or a reset: what is measured in the context ends, unless others have it still. */
static void prepare_end(CUdevice device, int is_reset) {
    if (device < 0 || device >= MOST_DEVICES || !primaries[device])
        return;
    if (!is_reset && retains[device] > 0)
        retains[device]--;
    if (is_reset || retains[device] == 0)
        lanes_drop_context(primaries[device]);
}

#define END_PRIMARY(name, is_reset)                                                                                    \
    CUresult name(CUdevice device) {                                                                                   \
        pthread_mutex_lock(&mutex);                                                                                    \
        prepare_end(device, is_reset);                                                                                 \
        CUresult result = look_after(device, CALL(name, device));                                                      \
        pthread_mutex_unlock(&mutex);                                                                                  \
        return result;                                                                                                 \
    }

END_PRIMARY(cuDevicePrimaryCtxRelease, 0)
END_PRIMARY(cuDevicePrimaryCtxRelease_v2, 0)
END_PRIMARY(cuDevicePrimaryCtxReset, 1)
END_PRIMARY(cuDevicePrimaryCtxReset_v2, 1)

/* ---- other contexts ------------------------------------------------------------------------------------------- */

static CUresult keep_or_undo(birth_t *birth, CUresult result, CUcontext *context) {
    if (end_context(birth, result, result == CUDA_SUCCESS ? *context : NULL) == 0)
        return result;
    if (real.cuCtxDestroy_v2)
        real.cuCtxDestroy_v2(*context);
    return refuse(birth->card, birth->reserved);
}

#define CREATE(name, parameters, ...)                                                                                  \
    CUresult name parameters {                                                                                         \
        birth_t birth;                                                                                                 \
        CUresult result = begin_context(&birth, card_of_device(device));                                               \
        if (result != CUDA_SUCCESS)                                                                                    \
            return result;                                                                                             \
        return keep_or_undo(&birth, CALL(name, __VA_ARGS__), context);                                                 \
    }

CREATE(cuCtxCreate, (CUcontext *context, unsigned int flags, CUdevice device), context, flags, device)
CREATE(cuCtxCreate_v2, (CUcontext *context, unsigned int flags, CUdevice device), context, flags, device)
CREATE(cuCtxCreate_v3, (CUcontext *context, void *affinity, int count, unsigned int flags, CUdevice device), context,
       affinity, count, flags, device)
CREATE(cuCtxCreate_v4, (CUcontext *context, void *parameters, unsigned int flags, CUdevice device), context, parameters,
       flags, device)

#define DESTROY(name)                                                                                                  \
    CUresult name(CUcontext context) {                                                                                 \
        lanes_drop_context(context);                                                                                   \
        CUresult result = CALL(name, context);                                                                         \
        if (result == CUDA_SUCCESS)                                                                                    \
            bury_context(context);                                                                                     \
        return result;                                                                                                 \
    }

DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)

/* ---- contexts that come about without this library ------------------------------------------------------------ */

void adopt_context(int card) {
    CUcontext context = NULL;
    if (card == NO_CARD || upkeep_has_context(card) || real.cuCtxGetCurrent == NULL || limit_of(card) == NO_LIMIT ||
        current_card() != card || real.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
        return;
    pthread_mutex_lock(&mutex);
    if (!upkeep_has_context(card))
        adopt(context, card);
    pthread_mutex_unlock(&mutex);
}

/* A green context is a part of its device's primary context, which the driver keeps for as long. What was allocated in
   it may outlive it, and stays charged. */
CUresult cuGreenCtxDestroy(CUgreenCtx green) {
    CUcontext context = NULL;
    if (load_cuda() == 0 && real.cuCtxFromGreenCtx)
        real.cuCtxFromGreenCtx(&context, green);
    pthread_mutex_lock(&mutex);
    lanes_drop_context(context);
    for (CUdevice device = 0; device < MOST_DEVICES; device++)
        lanes_drop_context(primaries[device]);
    CUresult result = CALL(cuGreenCtxDestroy, green);
    if (result == CUDA_SUCCESS)
        end_charge_of(context);
    for (CUdevice device = 0; device < MOST_DEVICES; device++)
        look_after(device, result);
    pthread_mutex_unlock(&mutex);
    return result;
}
