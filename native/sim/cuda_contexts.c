/* Contexts: one that all threads of a process share for each card, and others; each takes memory of its card. */
#define _GNU_SOURCE
#include "cuda.h"

#include <stdlib.h>

#define DEEPEST_STACK 32

/* Each thread has a stack of contexts; the top one is current. */
static _Thread_local struct {
    CUcontext contexts[DEEPEST_STACK];
    int depth;
} stack;

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
        primary->card = card;
        primary->device = device;
        primary->uses++;
        *context = primary;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

/* With the driver locked. */
static void end_primary(CUcontext primary) {
    free_blocks_of(primary);
    machine_give_back(primary->card, primary->card->context_bytes);
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
    *made = (struct context){.card = card, .device = device, .uses = 1};
    *context = made;
    return cuCtxPushCurrent_v2(made);
}

API CUresult cuCtxDestroy_v2(CUcontext context) {
    if (context == NULL || context == &driver.primary[context->device])
        return INVALID_CONTEXT;
    if (current_context() == context)
        stack.depth--;
    pthread_mutex_lock(&driver.mutex);
    free_blocks_of(context);
    pthread_mutex_unlock(&driver.mutex);
    machine_give_back(context->card, context->card->context_bytes);
    free(context);
    return SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *device) {
    if (current_context() == NULL)
        return INVALID_CONTEXT;
    *device = current_context()->device;
    return SUCCESS;
}

API CUresult cuCtxSynchronize(void) {
    if (current_context() == NULL)
        return INVALID_CONTEXT;
    trim_pools(current_context()->device);
    return SUCCESS;
}
