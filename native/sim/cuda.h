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
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    FILE_NOT_FOUND = 301,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOST_MEMORY_NOT_REGISTERED = 713,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_MERGE = 902,
    CAPTURE_UNMATCHED = 903,
    CAPTURE_UNJOINED = 904,
    CAPTURE_ISOLATION = 905,
    CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    CAPTURE_WRONG_THREAD = 908,
} CUresult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct pool *CUmemoryPool;
typedef struct stream *CUstream;
typedef struct event *CUevent;
typedef struct function *CUfunction;
typedef struct graph *CUgraph;
typedef struct graph_node *CUgraphNode;
typedef struct {
    char bytes[16];
} CUuuid;

typedef struct context {
    const card_t *card;
    CUdevice device;
    int uses;                   /* of the primary context of a device; others have one */
    uint64_t id;
    _Atomic CUresult fault;     /* what a kernel did that no context outlives, or SUCCESS */
    struct stream *legacy;      /* the default stream, made when it is first used */
    uint64_t heap_wish, heap_bytes;     /* what kernels may allocate, if it was said; and what was taken for it */
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

/* Before a launch: the heap that the context was given is taken with its first one. */
CUresult take_heap(CUcontext context);

/* What a call without a context is told. */
CUresult no_context(void);

/* Memory of the current context's card with an address: of the pool and counted there, where there is one. */
CUresult make_block(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool);

/* Whether it is host memory that a card can reach. */
int is_host_memory(const void *address);
void forget_host_memory(void);

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

/* The entry of this name for a program that was built for the version; the driver's numbers in `status`. */
CUresult look_up(const char *name, void **entry, int version, uint64_t flags, int *status);

/* 13000 is CUDA 13.0; TESSERA_SIM_DRIVER chooses an older one. */
int driver_version(void);

#endif
