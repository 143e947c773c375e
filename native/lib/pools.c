/* Pools of the driver, from which stream-ordered memory comes. A pool keeps what is freed in it, so what it has
   reserved is charged, not what is used of it. The driver says how much that is; the library asks after everything that
   may have changed it. */
#define _GNU_SOURCE
#include "compute.h"
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>

#define POOL_GRAIN ((uint64_t)32 << 20) /* pools grow by pieces of that size */

typedef struct pool {
    CUmemoryPool handle;
    int card;
    uint64_t charged;
    int is_used;
    struct pool *next;
} pool_t;

static struct {
    pthread_mutex_t mutex;
    pool_t *first;
} pools = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void forget_pools(void) {
    pthread_mutex_init(&pools.mutex, NULL);
    for (pool_t *pool = pools.first, *next; pool; pool = next) {
        next = pool->next;
        free(pool);
    }
    pools.first = NULL;
}

static uint64_t ask(CUmemoryPool pool, int attribute) {
    uint64_t bytes = 0;
    if (real.cuMemPoolGetAttribute == NULL || real.cuMemPoolGetAttribute(pool, attribute, &bytes) != CUDA_SUCCESS)
        return 0;
    return bytes;
}

/* With the pools locked, as the next ones. */
static pool_t **link_to(CUmemoryPool handle) {
    pool_t **link = &pools.first;
    while (*link && (*link)->handle != handle)
        link = &(*link)->next;
    return link;
}

/* Charge what the pool has now in place of what it had; `ahead` was charged before. Returns whether it grew more. */
static int settle(pool_t *pool, uint64_t ahead) {
    uint64_t now = ask(pool->handle, POOL_RESERVED_NOW), before = pool->charged + ahead;
    pool->charged = now;
    if (now > before)
        region_add(pool->card, now - before);
    else
        region_give_back(pool->card, before - now);
    return now > before;
}

void settle_pools(int card) {
    capture_guard_t guard = captures_guard();
    pthread_mutex_lock(&pools.mutex);
    for (pool_t *pool = pools.first; pool; pool = pool->next)
        if (pool->card == card)
            settle(pool, 0);
    pthread_mutex_unlock(&pools.mutex);
    settle_graph_memory(card);
    settle_leaving(card);
    settle_exports();
    captures_unguard(guard);
}

int trim_pools(int card) {
    uint64_t before = 0, after = 0;
    capture_guard_t guard = captures_guard();
    pthread_mutex_lock(&pools.mutex);
    for (pool_t *pool = pools.first; pool; pool = pool->next) {
        if (pool->card != card)
            continue;
        before += pool->charged;
        CALL(cuMemPoolTrimTo, pool->handle, 0);
        settle(pool, 0);
        after += pool->charged;
    }
    pthread_mutex_unlock(&pools.mutex);
    int is_less = trim_graph_memory(card), has_left = settle_leaving(card) + settle_exports();
    captures_unguard(guard);
    return is_less || has_left || after < before;
}

/* Returns 0, or -1 where the process has no memory to remember it. */
static int know(CUmemoryPool handle, int card) {
    pthread_mutex_lock(&pools.mutex);
    pool_t **link = link_to(handle);
    if (*link == NULL && (*link = malloc(sizeof **link)) != NULL)
        **link = (pool_t){.handle = handle, .card = card};
    int result = *link ? 0 : -1;
    pthread_mutex_unlock(&pools.mutex);
    return result;
}

/* ---- allocation ----------------------------------------------------------------------------------------------- */

typedef struct {
    CUmemoryPool pool;
    int card;
    uint64_t bytes, ahead;
} growth_t;

/* Charge what the pool may grow by. Nothing, where what it keeps is enough. */
static CUresult begin_growth(growth_t *growth, CUmemoryPool pool, int card, size_t bytes) {
    *growth = (growth_t){pool, card, bytes, 0};
    if (card == NO_CARD)
        return CUDA_SUCCESS;
    adopt_context(card);
    if (know(pool, card))
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t used = ask(pool, POOL_USED_NOW), reserved = ask(pool, POOL_RESERVED_NOW);
    uint64_t spare = reserved > used ? reserved - used : 0;     /* after a trim more may be used than there is */
    if (spare < bytes)
        growth->ahead = round_up(bytes, POOL_GRAIN);
    return try_reserve_pages(card, growth->ahead) ? refuse(card, bytes) : CUDA_SUCCESS;
}

/* A pool in pieces may have grown although it had enough. Where that goes over the limit the program is refused. */
static CUresult end_growth(const growth_t *growth, CUresult result, CUdeviceptr pointer, CUstream stream) {
    if (growth->card == NO_CARD)
        return result;
    pthread_mutex_lock(&pools.mutex);
    pool_t *pool = *link_to(growth->pool);
    int grew = pool && settle(pool, growth->ahead);
    if (pool && !pool->is_used) {
        pool->is_used = 1;
        upkeep_expect_growth(growth->card);     /* with its first pool the driver takes more than the pool has */
    }
    pthread_mutex_unlock(&pools.mutex);
    if (result != CUDA_SUCCESS || !grew || !region_is_over(growth->card, limit_of(growth->card)))
        return result;
    capture_guard_t guard = captures_guard();
    CALL(cuMemFreeAsync, pointer, stream);
    if (real.cuStreamSynchronize)
        real.cuStreamSynchronize(stream);       /* before that the pool keeps it */
    captures_unguard(guard);
    trim_pools(growth->card);
    return refuse(growth->card, growth->bytes);
}

static CUresult begin_default_growth(growth_t *growth, size_t bytes, CUstream stream) {
    CUdevice device;
    CUmemoryPool pool;
    if (device_of_stream(stream, &device) || !real.cuDeviceGetMemPool ||
        real.cuDeviceGetMemPool(&pool, device) != CUDA_SUCCESS)
        return begin_growth(growth, NULL, NO_CARD, bytes);
    return begin_growth(growth, pool, card_of_device(device), bytes);
}

/* The card of a pool that was made here or is the device's; one that came from elsewhere is charged there. */
static int card_of_pool(CUmemoryPool handle) {
    pthread_mutex_lock(&pools.mutex);
    pool_t *pool = *link_to(handle);
    int card = pool ? pool->card : NO_CARD;
    pthread_mutex_unlock(&pools.mutex);
    return card;
}

/* Memory that is recorded into a graph is the graph's (graph_memory.c). */
static int is_recorded(CUstream stream) {
    return captures_open && stream_is_capturing(stream);
}

#define ALLOC_ASYNC(name, stream_of)                                                                                   \
    CUresult name(CUdeviceptr *pointer, size_t bytes, CUstream stream) {                                               \
        growth_t growth;                                                                                               \
        if (is_recorded(stream_of(stream)))                                                                            \
            return CALL(name, pointer, bytes, stream);                                                                 \
        CUresult result = begin_default_growth(&growth, bytes, stream_of(stream));                                     \
        if (result != CUDA_SUCCESS)                                                                                    \
            return result;                                                                                             \
        result = CALL(name, pointer, bytes, stream);                                                                   \
        return end_growth(&growth, result, result == CUDA_SUCCESS ? *pointer : 0, stream_of(stream));                  \
    }

#define ALLOC_FROM_POOL(name, stream_of)                                                                               \
    CUresult name(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {                            \
        growth_t growth;                                                                                               \
        if (is_recorded(stream_of(stream)))                                                                            \
            return CALL(name, pointer, bytes, pool, stream);                                                           \
        CUresult result = begin_growth(&growth, pool, card_of_pool(pool), bytes);                                      \
        if (result != CUDA_SUCCESS)                                                                                    \
            return result;                                                                                             \
        result = CALL(name, pointer, bytes, pool, stream);                                                             \
        return end_growth(&growth, result, result == CUDA_SUCCESS ? *pointer : 0, stream_of(stream));                  \
    }

/* What came from a pool stays with the pool; a block of cuMemAlloc may be freed in a stream too. */
#define FREE_ASYNC(name, stream_of)                                                                                    \
    CUresult name(CUdeviceptr pointer, CUstream stream) {                                                              \
        block_t block;                                                                                                 \
        if (!is_recorded(stream_of(stream)) && drop_spilled(pointer, &block))                                          \
            return free_spilled_after(&block, stream_of(stream));                                                      \
        int was_known = blocks_drop(POINTER, pointer, &block);                                                         \
        return end_free_in(stream_of(stream), was_known, &block, CALL(name, pointer, stream));                         \
    }

ALLOC_ASYNC(cuMemAllocAsync, of_all)
ALLOC_ASYNC(cuMemAllocAsync_ptsz, of_thread)
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync, of_all)
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync_ptsz, of_thread)
FREE_ASYNC(cuMemFreeAsync, of_all)
FREE_ASYNC(cuMemFreeAsync_ptsz, of_thread)

/* ---- pools of the program ------------------------------------------------------------------------------------- */

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *wish) {
    CUresult result = CALL(cuMemPoolCreate, pool, wish);
    int card = result == CUDA_SUCCESS && wish->location.type == LOCATION_DEVICE ? card_of_device(wish->location.id)
                                                                                 : NO_CARD;
    if (card != NO_CARD && know(*pool, card)) {
        CALL(cuMemPoolDestroy, *pool);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

/* A program may take from its device's own pools by their handles, so they are known from when it has those. */
static CUresult hand_out(CUresult result, const CUmemoryPool *pool, int location, CUdevice device) {
    int card = result == CUDA_SUCCESS && location == LOCATION_DEVICE ? card_of_device(device) : NO_CARD;
    return card != NO_CARD && know(*pool, card) ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    return hand_out(CALL(cuDeviceGetMemPool, pool, device), pool, LOCATION_DEVICE, device);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    return hand_out(CALL(cuDeviceGetDefaultMemPool, pool, device), pool, LOCATION_DEVICE, device);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
    CUresult result = CALL(cuMemGetMemPool, pool, location, type);
    return result == CUDA_SUCCESS ? hand_out(result, pool, location->type, location->id) : result;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
    CUresult result = CALL(cuMemGetDefaultMemPool, pool, location, type);
    return result == CUDA_SUCCESS ? hand_out(result, pool, location->type, location->id) : result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
    CUresult result = CALL(cuMemPoolTrimTo, handle, keep);
    pthread_mutex_lock(&pools.mutex);
    pool_t *pool = *link_to(handle);
    if (pool)
        settle(pool, 0);
    pthread_mutex_unlock(&pools.mutex);
    return result;
}

/* What is still in use of a pool that is gone cannot be asked for any more. It stays charged until NVML says that it
   is not there, or the process ends. A driver that refuses to end it leaves all as it was. */
CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    uint64_t in_use = load_cuda() == 0 ? round_up(ask(handle, POOL_USED_NOW), PAGE) : 0;
    CUresult result = CALL(cuMemPoolDestroy, handle);
    pool_t gone = {.card = NO_CARD};
    pthread_mutex_lock(&pools.mutex);
    pool_t **link = link_to(handle), *pool = *link;
    if (result == CUDA_SUCCESS && pool) {
        gone = *pool;
        *link = pool->next;
        free(pool);
    }
    pthread_mutex_unlock(&pools.mutex);
    uint64_t left = in_use < gone.charged ? in_use : gone.charged;
    if (gone.card != NO_CARD) {
        region_give_back(gone.card, gone.charged - left);
        upkeep_take_over(gone.card, left);
    }
    return result;
}
