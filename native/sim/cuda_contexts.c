/* Contexts: one that all threads of a process share for each card, and others; each takes memory of its card. */
#define _GNU_SOURCE
#include "cuda_blocks.h"
#include "cuda_graphs.h"

#include <stdlib.h>

#define DEEPEST_STACK 32
#define HEAP_OF_KERNELS 2

/* Each thread has a stack of contexts; the top one is current. */
static _Thread_local struct {
    CUcontext contexts[DEEPEST_STACK];
    int depth;
} stack;

static uint64_t last_id;        /* guarded by the driver's lock */

CUcontext current_context(void) {
    return stack.depth > 0 ? stack.contexts[stack.depth - 1] : NULL;
}

void forget_contexts(void) {
    stack.depth = 0;
}

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
        if (primary->uses == 0)
            *primary = (struct context){.card = card, .device = device, .id = ++last_id};
        primary->uses++;
        *context = primary;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

/* With the driver locked. */
static void end_primary(CUcontext primary) {
    queue_remove_streams(primary);
    free_blocks_of(primary);
    machine_give_back(primary->card, primary->card->context_bytes + primary->heap_bytes);
    primary->uses = 0;
}

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
        end_primary(primary);
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    const card_t *card;
    CUresult result = find_card(device, &card);
    if (result != SUCCESS)
        return result;
    pthread_mutex_lock(&driver.mutex);
    if (driver.primary[device].uses > 0)
        end_primary(&driver.primary[device]);
    pthread_mutex_unlock(&driver.mutex);
    return SUCCESS;
}

API CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    return cuDevicePrimaryCtxReset_v2(device);
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *is_active) {
    const card_t *card;
    CUresult result = flags && is_active ? find_card(device, &card) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    *flags = 0;
    *is_active = driver.primary[device].uses > 0;
    return SUCCESS;
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
    if (current_context() == NULL)
        return INVALID_CONTEXT;
    if (context)
        *context = current_context();
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
    *context = current_context();
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
    pthread_mutex_lock(&driver.mutex);
    *made = (struct context){.card = card, .device = device, .uses = 1, .id = ++last_id};
    pthread_mutex_unlock(&driver.mutex);
    *context = made;
    return cuCtxPushCurrent_v2(made);
}

/* The first version, which is only exported; as the one of cuCtxDestroy. */
API CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device) {
    return cuCtxCreate_v2(context, flags, device);
}

API CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned int flags, CUdevice device) {
    (void)affinity, (void)count;
    return cuCtxCreate_v2(context, flags, device);
}

API CUresult cuCtxCreate_v4(CUcontext *context, void *wish, unsigned int flags, CUdevice device) {
    (void)wish;
    return cuCtxCreate_v2(context, flags, device);
}

API CUresult cuCtxDestroy_v2(CUcontext context) {
    if (context == NULL || context == &driver.primary[context->device])
        return INVALID_CONTEXT;
    if (current_context() == context)
        stack.depth--;
    pthread_mutex_lock(&driver.mutex);
    queue_remove_streams(context);
    free_blocks_of(context);
    pthread_mutex_unlock(&driver.mutex);
    machine_give_back(context->card, context->card->context_bytes + context->heap_bytes);
    free(context);
    return SUCCESS;
}

API CUresult cuCtxDestroy(CUcontext context) {
    return cuCtxDestroy_v2(context);
}

/* Only the heap of kernels is simulated, and programs find this by name alone. */
API CUresult cuCtxSetLimit(int which, size_t bytes) {
    CUcontext context;
    CUresult result = check_context(&context);
    if (result != SUCCESS || which != HEAP_OF_KERNELS)
        return result;
    if (context->heap_bytes)
        return INVALID_VALUE;
    context->heap_wish = round_up(bytes, PAGE);
    return SUCCESS;
}

CUresult take_heap(CUcontext context) {
    CUresult result = SUCCESS;
    if (context->heap_bytes == context->heap_wish)
        return SUCCESS;
    pthread_mutex_lock(&driver.mutex);
    if (context->heap_bytes == 0 && machine_take(context->card, context->heap_wish))
        result = OUT_OF_MEMORY;
    else
        context->heap_bytes = context->heap_wish;
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

API CUresult cuCtxGetDevice(CUdevice *device) {
    if (current_context() == NULL)
        return INVALID_CONTEXT;
    *device = current_context()->device;
    return SUCCESS;
}

API CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
    context = context ? context : current_context();
    if (context == NULL || id == NULL)
        return context ? INVALID_VALUE : no_context();
    *id = context->id;
    return SUCCESS;
}

/* Not while a stream of the context is captured: it could not be waited for. */
API CUresult cuCtxSynchronize(void) {
    CUcontext context;
    CUresult result = check_context(&context);
    if (result == SUCCESS)
        result = check_no_capture(context);
    if (result == SUCCESS)
        result = queue_drain_context(context);
    if (result == SUCCESS)
        trim_pools(context->device);
    return result;
}
