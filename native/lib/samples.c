/* Samples: what launches really take that come one by one, so that the card is idle between them.

   A few of them are held back behind a flag and then run back to back between two events. The flag is memory of the
   host: it is set with a plain store, from any thread and without the driver, so nothing that is held can stay so
   because the driver is busy. Whoever waits for the card lets go first, and the timekeeper does after a fraction of a
   millisecond. */
#define _GNU_SOURCE
#include "compute.h"

#include <string.h>

#define SPACING_FIRST_NS (1 * MILLISECOND)
#define SPACING_NS (15 * MILLISECOND)
#define SPACING_LATER_NS (60 * MILLISECOND)
#define JITTER_NS (5 * MILLISECOND)             /* so that it does not keep step with the program */
#define FEW 20
#define MANY 200

static struct {
    _Atomic int is_taken;       /* one at a time */
    pthread_mutex_t mutex;      /* while one begins, and while its flag goes */
    CUcontext context;          /* that the flag was made in */
    _Atomic uint32_t *flag;
    CUdeviceptr address;
    _Atomic uint32_t value;     /* the flag's, once nothing is held */
    _Atomic(lane_t *) lane;     /* that is held; known last, when there is something to let go */
    _Atomic int64_t since_ns;
    int is_impossible;
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int make_flag(CUcontext context) {
    void *memory = NULL;
    if (held.is_impossible || real.cuStreamWaitValue32_v2 == NULL || real.cuMemHostAlloc == NULL ||
        real.cuMemHostGetDevicePointer_v2 == NULL ||
        real.cuMemHostAlloc(&memory, 64, HOST_PORTABLE | HOST_MAPPED) != CUDA_SUCCESS ||
        real.cuMemHostGetDevicePointer_v2(&held.address, memory, 0) != CUDA_SUCCESS) {
        held.is_impossible = 1;
        return -1;
    }
    held.flag = memory;
    held.context = context;
    held.value = 0;
    atomic_store(held.flag, 0);
    return 0;
}

static int64_t spacing(const gate_t *gate) {
    int64_t least = gate->samples < FEW ? SPACING_FIRST_NS : gate->samples < MANY ? SPACING_NS : SPACING_LATER_NS;
    return least + gate->launched_ns % (gate->samples < FEW ? SPACING_FIRST_NS : JITTER_NS);
}

static int hold_back(lane_t *lane) {
    uint32_t value = atomic_load(&held.value) + 1;
    if ((held.flag == NULL && make_flag(lane->timeline->context)) ||
        real.cuStreamWaitValue32_v2(lane->stream, held.address, value, WAIT_UNTIL_GREATER_OR_EQUAL) != CUDA_SUCCESS) {
        held.is_impossible = 1;
        return -1;
    }
    atomic_store(&held.value, value);
    return 0;
}

int sample_begin(lane_t *lane, int64_t t) {
    gate_t *gate = lane->gate;
    int nobody = 0;
    if (held.is_impossible || !timekeeper_runs() || t - gate->sampled_ns < spacing(gate) || captures_open ||
        !atomic_compare_exchange_strong(&held.is_taken, &nobody, 1))
        return 0;
    gate->sampled_ns = t;
    gate->samples++;
    gate->wants_sample = 0;
    pthread_mutex_lock(&held.mutex);
    int is_held = hold_back(lane) == 0;
    atomic_store(&held.since_ns, t);
    if (is_held)
        atomic_store(&held.lane, lane);
    else
        atomic_store(&held.is_taken, 0);
    pthread_mutex_unlock(&held.mutex);
    if (!timekeeper_runs())
        sample_let_go();
    return is_held;
}

/* Returns whether this call did. */
static int let_go_of(lane_t *lane) {
    if (lane == NULL || !atomic_compare_exchange_strong(&held.lane, &lane, NULL))
        return 0;
    atomic_store(held.flag, atomic_load(&held.value));
    atomic_store(&held.is_taken, 0);
    return 1;
}

void sample_let_go(void) {
    let_go_of(atomic_load(&held.lane));
}

int sample_end(lane_t *lane) {
    return let_go_of(lane);
}

int64_t sample_since(void) {
    return atomic_load(&held.lane) ? atomic_load(&held.since_ns) : 0;
}

void forget_sample(void) {
    memset(&held, 0, sizeof held);
    pthread_mutex_init(&held.mutex, NULL);
}

void sample_forget_context(CUcontext context) {
    pthread_mutex_lock(&held.mutex);
    sample_let_go();
    if (held.flag && held.context == context)
        held.flag = NULL;       /* it goes with its context */
    pthread_mutex_unlock(&held.mutex);
}
