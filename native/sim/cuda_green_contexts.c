/* Green contexts: parts of a device's primary context, which they keep. Which part of the card they are is not
   simulated; programs find them by name alone. */
#define _GNU_SOURCE
#include "cuda_blocks.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_STREAM 1
#define MULTIPROCESSORS 1

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);

typedef struct {
    int type;
    unsigned char rest[140];
} part_t;

API CUresult cuDeviceGetDevResource(CUdevice device, part_t *part, int type) {
    (void)device;
    if (part == NULL || type != MULTIPROCESSORS)
        return INVALID_VALUE;
    memset(part, 0, sizeof *part);
    part->type = type;
    return SUCCESS;
}

API CUresult cuDevResourceGenerateDesc(void **description, part_t *parts, unsigned int count) {
    if (description == NULL || parts == NULL || count == 0)
        return INVALID_VALUE;
    *description = parts;
    return SUCCESS;
}

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
