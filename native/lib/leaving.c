/* Blocks that are freed in a stream. The driver lets go of them when the stream has come so far, and until then they
   stay charged. An event behind the free tells when that is; without one it is held to be done. */
#define _GNU_SOURCE
#include "compute.h"
#include "memory.h"

#include <stdlib.h>

typedef struct leaving {
    block_t block;
    CUevent event;
    CUcontext context;          /* that the event goes with */
    struct leaving *next;
} leaving_t;

static struct {
    pthread_mutex_t mutex;
    leaving_t *first;
} leaving = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static _Atomic int is_used;     /* nobody looks for them before there are some */

/* With the mutex. */
static void unlink_and_give_back(leaving_t **link) {
    leaving_t *one = *link;
    *link = one->next;
    give_back_block(one->block.card, one->block.bytes);
    free(one);
}

void forget_leaving(void) {
    pthread_mutex_init(&leaving.mutex, NULL);
    for (leaving_t *one = leaving.first, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    leaving.first = NULL;
    atomic_store(&is_used, 0);
}

static int mark(leaving_t *one, CUstream stream) {
    if (real.cuEventCreate == NULL || real.cuCtxGetCurrent(&one->context) != CUDA_SUCCESS ||
        real.cuEventCreate(&one->event, EVENT_WITHOUT_TIME) != CUDA_SUCCESS)
        return -1;
    if (real.cuEventRecord(one->event, stream) == CUDA_SUCCESS)
        return 0;
    real.cuEventDestroy_v2(one->event);
    return -1;
}

CUresult end_free_in(CUstream stream, int was_known, const block_t *block, CUresult result) {
    leaving_t *one = was_known && result == CUDA_SUCCESS ? calloc(1, sizeof *one) : NULL;
    if (one == NULL || mark(one, stream)) {
        free(one);
        return end_free(was_known, block, result);
    }
    one->block = *block;
    pthread_mutex_lock(&leaving.mutex);
    one->next = leaving.first;
    leaving.first = one;
    pthread_mutex_unlock(&leaving.mutex);
    atomic_store(&is_used, 1);
    return result;
}

int settle_leaving(int card) {
    int count = 0;
    if (!atomic_load_explicit(&is_used, memory_order_relaxed))
        return 0;
    pthread_mutex_lock(&leaving.mutex);
    for (leaving_t **link = &leaving.first; *link;) {
        if ((*link)->block.card != card || real.cuEventQuery((*link)->event) == CUDA_ERROR_NOT_READY) {
            link = &(*link)->next;
            continue;
        }
        real.cuEventDestroy_v2((*link)->event);
        unlink_and_give_back(link);
        count++;
    }
    pthread_mutex_unlock(&leaving.mutex);
    return count;
}

void bury_leaving(CUcontext context) {
    pthread_mutex_lock(&leaving.mutex);
    for (leaving_t **link = &leaving.first; *link;) {
        if ((*link)->context == context)
            unlink_and_give_back(link);
        else
            link = &(*link)->next;
    }
    pthread_mutex_unlock(&leaving.mutex);
}
