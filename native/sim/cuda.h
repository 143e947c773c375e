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
} driver_t;

extern driver_t driver;

/* The card behind a device, or the reason why there is none. */
CUresult find_card(CUdevice device, const card_t **card);

/* Of the calling thread; NULL, if it has none. */
CUcontext current_context(void);

/* In a forked child, whose only thread has none. */
void forget_contexts(void);

/* Free everything that was allocated on the card. With the driver locked. */
void free_blocks_of(const card_t *card);

#endif
