/* Pools: stream-ordered memory. A pool grows by large pieces and keeps what is freed in it, until it is trimmed or the
   device is waited for, as with a driver. What is freed in one stream can be taken in any; a driver waits for that. */
#define _GNU_SOURCE
#include "cuda_blocks.h"
#include "cuda_graphs.h"

#include <stdlib.h>

#define PIECE ((uint64_t)32 << 20)
#define BLOCK_GRAIN 512
#define ON_DEVICE 1

enum { RELEASE_THRESHOLD = 4, RESERVED_NOW, RESERVED_MOST, USED_NOW, USED_MOST };

struct pool {
    const card_t *card;
    uint64_t reserved, used, threshold;
    int is_over;                /* it lives until its last block is freed */
};

typedef struct {
    int type, id;
} CUmemLocation;

typedef struct {
    int type, handle_types;
    CUmemLocation location;
} CUmemPoolProps;

/* Each device has a pool of its own, and one that is current. Guarded by the driver's lock. */
static struct pool own[MACHINE_MOST_CARDS];
static CUmemoryPool chosen[MACHINE_MOST_CARDS];

void forget_pools(void) {
    for (int device = 0; device < MACHINE_MOST_CARDS; device++) {
        own[device] = (struct pool){0};
        chosen[device] = NULL;
    }
}

int pool_take(CUmemoryPool pool, uint64_t bytes) {
    uint64_t after = pool->used + round_up(bytes, BLOCK_GRAIN);
    uint64_t more = after > pool->reserved ? round_up(after - pool->reserved, PIECE) : 0;
    if (more && machine_take(pool->card, more))
        return -1;
    pool->reserved += more;
    pool->used = after;
    return 0;
}

static void trim(CUmemoryPool pool, uint64_t keep) {
    uint64_t least = round_up(pool->used > keep ? pool->used : keep, PIECE);
    if (pool->card == NULL || pool->reserved <= least)
        return;
    machine_give_back(pool->card, pool->reserved - least);
    pool->reserved = least;
}

static void end_if_over(CUmemoryPool pool) {
    if (!pool->is_over || pool->used)
        return;
    trim(pool, 0);
    free(pool);
}

void pool_put_back(CUmemoryPool pool, uint64_t bytes) {
    pool->used -= round_up(bytes, BLOCK_GRAIN);
    end_if_over(pool);
}

static CUresult pool_of(CUdevice device, CUmemoryPool *pool) {
    const card_t *card;
    CUresult result = pool ? find_card(device, &card) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    pthread_mutex_lock(&driver.mutex);
    own[device].card = card;
    pthread_mutex_unlock(&driver.mutex);
    *pool = &own[device];
    return SUCCESS;
}

void trim_pools(CUdevice device) {
    pthread_mutex_lock(&driver.mutex);
    trim(&own[device], own[device].threshold);
    if (chosen[device])
        trim(chosen[device], chosen[device]->threshold);
    pthread_mutex_unlock(&driver.mutex);
}

API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    return pool_of(device, pool);
}

API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    CUresult result = pool_of(device, pool);
    if (result == SUCCESS && chosen[device])
        *pool = chosen[device];
    return result;
}

/* As of CUDA 13; programs find these two by name alone. */
API CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
    (void)type;
    return location && location->type == ON_DEVICE ? pool_of(location->id, pool) : INVALID_VALUE;
}

API CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
    (void)type;
    return location && location->type == ON_DEVICE ? cuDeviceGetMemPool(pool, location->id) : INVALID_VALUE;
}

API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    const card_t *card;
    CUresult result = pool ? find_card(device, &card) : INVALID_VALUE;
    if (result == SUCCESS)
        chosen[device] = pool;
    return result;
}

API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *wish) {
    const card_t *card;
    if (pool == NULL || wish == NULL || wish->location.type != ON_DEVICE)
        return INVALID_VALUE;
    CUresult result = find_card(wish->location.id, &card);
    if (result != SUCCESS)
        return result;
    CUmemoryPool made = calloc(1, sizeof *made);
    if (made == NULL)
        return OUT_OF_MEMORY;
    made->card = card;
    *pool = made;
    return SUCCESS;
}

API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    if (pool == NULL || (pool >= own && pool < own + MACHINE_MOST_CARDS))
        return INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    for (int device = 0; device < MACHINE_MOST_CARDS; device++)
        if (chosen[device] == pool)
            chosen[device] = NULL;
    trim(pool, 0);
    pool->is_over = 1;
    end_if_over(pool);
    pthread_mutex_unlock(&driver.mutex);
    return SUCCESS;
}

API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    if (pool == NULL)
        return INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    trim(pool, keep);
    pthread_mutex_unlock(&driver.mutex);
    return SUCCESS;
}

API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
    if (pool == NULL || value == NULL)
        return INVALID_VALUE;
    switch (attribute) {
    case RELEASE_THRESHOLD:
        *(uint64_t *)value = pool->threshold;
        return SUCCESS;
    case RESERVED_NOW:
        *(uint64_t *)value = pool->reserved;
        return SUCCESS;
    case USED_NOW:
        *(uint64_t *)value = pool->used;
        return SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
    if (pool == NULL || value == NULL || attribute != RELEASE_THRESHOLD)
        return INVALID_VALUE;
    pool->threshold = *(uint64_t *)value;
    return SUCCESS;
}

static CUresult alloc_from(stream_t *stream, CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool) {
    if (pool == NULL)
        return INVALID_VALUE;
    return stream->capture ? capture_alloc(stream, pointer, bytes) : make_block(pointer, bytes, pool);
}

static CUresult alloc(stream_t *stream, CUdeviceptr *pointer, size_t bytes) {
    CUmemoryPool pool;
    CUresult result = cuDeviceGetMemPool(&pool, stream->context->device);
    return result == SUCCESS ? alloc_from(stream, pointer, bytes, pool) : result;
}

static CUresult put_back(stream_t *stream, CUdeviceptr pointer) {
    return stream->capture ? capture_free(stream, pointer) : free_block_in(pointer, stream);
}

STREAM_ENTRY(cuMemAllocFromPoolAsync, (CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream),
             alloc_from(on, pointer, bytes, pool))
STREAM_ENTRY(cuMemAllocAsync, (CUdeviceptr *pointer, size_t bytes, CUstream stream), alloc(on, pointer, bytes))
STREAM_ENTRY(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream), put_back(on, pointer))
