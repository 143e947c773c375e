/* A thread that finishes what no launch comes to finish: it ends segments of a program that has gone quiet, gives up
   turns that are not used, and lets go of samples. It sleeps while the process launches nothing.

   It only ever tries for a gate's mutex, and takes the driver's time only where no launch wants it. */
#define _GNU_SOURCE
#include "compute.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QUIET_NS (250 * MICROSECOND)
#define IDLE_NS (200 * MICROSECOND)
#define PERIOD_NS (500 * MICROSECOND)
#define SHORT_PERIOD_NS (150 * MICROSECOND)
#define SLEEP_AFTER_NS (50 * MILLISECOND)

static _Atomic uint32_t is_awake;
static _Atomic int is_started, is_running, is_over;

/* Returns whether there is reason to look again soon. */
static int look_after(gate_t *gate, int64_t t) {
    tenancy_t *tenancy = &gate->tenancy;
    if (gate->waiting || t - gate->launched_ns < QUIET_NS || pthread_mutex_trylock(&gate->mutex))
        return 1;
    for (int one = 0; one < gate->lane_count; one++) {
        lane_t *lane = gate->lanes[one];
        if (lane->is_open && lane->timeline && !lane->launching &&
            real.cuCtxSetCurrent(lane->timeline->context) == CUDA_SUCCESS)
            segment_close(lane, t);
    }
    segments_collect(gate, t);
    int64_t in_flight = tenant_in_flight(tenancy, gate->in_flight_ns, t);
    int is_drained = gate_is_drained(gate);
    if (!is_drained)
        tenant_is_at_work(tenancy, t);
    if (!gate->waiting && turn_is_own(tenancy)) {
        int is_idle = is_drained && in_flight <= 0 && t - gate->launched_ns > IDLE_NS;
        if (is_idle)
            turn_end(tenancy, t);
        else
            turn_keep(tenancy, t + 3 * MILLISECOND);
    }
    if (!gate->waiting && is_drained)
        atomic_store(&tenancy->own->waiting_ns, 0);
    pthread_mutex_unlock(&gate->mutex);
    return !is_drained || t - gate->launched_ns < SLEEP_AFTER_NS;
}

static int has_launched_since(int64_t t) {
    for (int card = 0; card < MOST_CARDS; card++) {
        const gate_t *gate = gate_at(card);
        if (gate && gate->launched_ns > t)
            return 1;
    }
    return 0;
}

/* Whoever launches after the first line wakes us; what was launched before it is seen here. */
static void sleep_until_woken(void) {
    atomic_store(&is_awake, 0);
    if (sample_since() || has_launched_since(now_ns() - SLEEP_AFTER_NS))
        atomic_store(&is_awake, 1);
    while (atomic_load(&is_awake) == 0)
        syscall(SYS_futex, &is_awake, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void *keep_time(void *nothing) {
    (void)nothing;
    captures_guard();           /* for all of this thread's life */
    while (!atomic_load(&is_over)) {
        int is_needed = 0;
        int64_t t = now_ns(), since = sample_since();
        if (since && t - since > QUIET_NS)
            sample_let_go();
        for (int card = 0; card < MOST_CARDS && !atomic_load(&is_over); card++) {
            gate_t *gate = gate_at(card);
            is_needed |= gate && gate->tenancy.file && look_after(gate, t);
        }
        if (!is_needed && !since)
            sleep_until_woken();
        struct timespec pause = {.tv_nsec = since ? SHORT_PERIOD_NS : PERIOD_NS};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int timekeeper_runs(void) {
    return atomic_load(&is_running);
}

/* At exit the driver goes away under whoever uses it. Nothing is locked: the program may have been interrupted. */
static void stop(void) {
    atomic_store(&is_running, 0);
    atomic_store(&is_over, 1);
    sample_let_go();
    for (int card = 0; card < MOST_CARDS; card++) {
        gate_t *gate = gate_at(card);
        if (gate == NULL || gate->tenancy.file == NULL)
            continue;
        if (tenant_in_flight(&gate->tenancy, 0, now_ns()) <= 0)
            turn_end(&gate->tenancy, now_ns());
    }
}

/* With all signals blocked: they are the program's. */
static void start(void) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, keep_time, NULL) == 0) {
        pthread_detach(thread);
        atomic_store(&is_running, 1);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    atexit(stop);
}

void timekeeper_wake(void) {
    if (atomic_load_explicit(&is_awake, memory_order_relaxed))
        return;
    atomic_store(&is_awake, 1);
    if (!atomic_exchange(&is_started, 1))
        start();
    else
        syscall(SYS_futex, &is_awake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void forget_timekeeper(void) {
    atomic_store(&is_awake, 0);
    atomic_store(&is_started, 0);
    atomic_store(&is_running, 0);
    atomic_store(&is_over, 0);
}
