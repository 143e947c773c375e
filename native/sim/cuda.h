/* What the parts of the simulated libcuda.so.1 share: the driver's types and codes, and its one state.

   Names of types and functions are the driver's own, because programs are compiled against them. */

#ifndef TESSERA_SIM_CUDA_H
#define TESSERA_SIM_CUDA_H

#include "machine.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

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
typedef struct pool *CUmemoryPool;
typedef void *CUstream;
typedef struct {
    char bytes[16];
} CUuuid;

typedef struct context {
    const card_t *card;
    CUdevice device;
    int uses;                   /* of the primary context of a device; others have one */
} *CUcontext;

/* `mutex` guards what changes after cuInit: the uses of primary contexts, and the blocks. */
typedef struct {
    pthread_mutex_t mutex;
    int is_ready;
    int count;
    const card_t *cards[MACHINE_MOST_CARDS];
    struct context primary[MACHINE_MOST_CARDS];
    struct block *blocks;
    uint64_t small_bytes[MACHINE_MOST_CARDS];   /* of the blocks that share pages, by the card's index */
} driver_t;

extern driver_t driver;

/* The card behind a device, or the reason why there is none. */
CUresult find_card(CUdevice device, const card_t **card);

/* Of the calling thread; NULL, if it has none. */
CUcontext current_context(void);

/* In a forked child, whose only thread has none. */
void forget_contexts(void);

/* What a call without a context is told. */
CUresult no_context(void);

/* Memory with an address: of the pool and counted there, or of the context's card where there is no pool. */
CUresult make_block(CUdeviceptr *pointer, size_t bytes, CUcontext context, CUmemoryPool pool);
CUresult free_block_at(CUdeviceptr pointer);

/* Free everything that was allocated in the context; what came from pools stays. With the driver locked. */
void free_blocks_of(CUcontext context);

/* Take memory out of a pool, which grows if it must, and put it back. With the driver locked. */
int pool_take(CUmemoryPool pool, uint64_t bytes);
void pool_put_back(CUmemoryPool pool, uint64_t bytes);

/* Let go of what the pools of the device keep beyond what they were told to. */
void trim_pools(CUdevice device);
void forget_pools(void);

#define PAGE ((uint64_t)2 << 20)

static inline uint64_t round_up(uint64_t value, uint64_t grain) {
    return value > UINT64_MAX - grain ? UINT64_MAX : (value + grain - 1) / grain * grain;
}

/* 13000 is CUDA 13.0; TESSERA_SIM_DRIVER chooses an older one. */
int driver_version(void);

#endif
