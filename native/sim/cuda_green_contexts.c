/* Green contexts: parts of a device's primary context, which they keep. Which part of the card they are is not
   simulated; programs find them by name alone. */
#define _GNU_SOURCE
#include "cuda_blocks.h"

#include <stdlib.h>

#define DEFAULT_STREAM 1

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);

/* A context without memory of its own. */
typedef struct green {
    struct context context;
} *CUgreenCtx;

API CUresult cuGreenCtxCreate(CUgreenCtx *green, void *part, CUdevice device, unsigned int flags) {
    CUcontext primary;
    (void)part;
    CUresult result = green && flags == DEFAULT_STREAM ? cuDevicePrimaryCtxRetain(&primary, device) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    *green = calloc(1, sizeof **green);
    if (*green == NULL) {
        cuDevicePrimaryCtxRelease_v2(device);
        return OUT_OF_MEMORY;
    }
    (*green)->context = (struct context){.card = primary->card, .device = device, .uses = 1};
    return SUCCESS;
}

API CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green) {
    if (context == NULL || green == NULL)
        return INVALID_VALUE;
    *context = &green->context;
    return SUCCESS;
}

API CUresult cuGreenCtxDestroy(CUgreenCtx green) {
    if (green == NULL)
        return INVALID_VALUE;
    CUdevice device = green->context.device;
    pthread_mutex_lock(&driver.mutex);
    queue_remove_streams(&green->context);
    free_blocks_of(&green->context);
    pthread_mutex_unlock(&driver.mutex);
    free(green);
    return cuDevicePrimaryCtxRelease_v2(device);
}
