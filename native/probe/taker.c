/* A program that takes memory of a card, for tests: small and quick to start, and it comes by the driver in one of the
   ways in which real programs do.

       taker LOOKUP ACTION STEP_MIB [MOST_PERCENT]

   LOOKUP   dlsym (and dlopen, as a static runtime does), address, address_v2 (cuGetProcAddress), linked
   ACTION   fill (take until refused, say how much, hold it until the input ends), one (likewise, a single step),
            race (fill, after it has said `ready` and was given a line), churn (take, hold a few and give back, for
            ever), contest (line up as for a race, take and give back many times, say how often more than MOST_PERCENT
            of the card was taken), lap (nanoseconds of an alloc and a free) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CUDA_VERSION 13000
#define KEPT 16
#define LIVE_BLOCKS 4000
#define LAPS 5000
#define ROUNDS 20000

typedef int init_t(unsigned int);
typedef int retain_t(void **, int);
typedef int set_t(void *);
typedef int alloc_t(unsigned long long *, size_t);
typedef int free_t(unsigned long long);
typedef int start_t(void);
typedef int handle_t(unsigned int, void **);
typedef int rates_t(void *, unsigned int *);
typedef int lookup_t(const char *, void **, int, uint64_t);
typedef int lookup_v2_t(const char *, void **, int, uint64_t, int *);

static struct {
    init_t *init;
    retain_t *retain;
    set_t *set;
    alloc_t *alloc;
    free_t *free;
} cuda;

#ifdef LINKED
init_t cuInit;
retain_t cuDevicePrimaryCtxRetain;
set_t cuCtxSetCurrent;
alloc_t cuMemAlloc_v2;
free_t cuMemFree_v2;
#endif

static void fail(const char *what, int code) {
    printf("%s: %d\n", what, code);
    exit(1);
}

static void *look_up(const char *how, void *library, const char *name, const char *newest) {
    void *entry = NULL;
    if (strcmp(how, "dlsym") == 0)
        return dlsym(library, newest);
    if (strcmp(how, "address") == 0)
        ((lookup_t *)(uintptr_t)dlsym(library, "cuGetProcAddress"))(name, &entry, CUDA_VERSION, 0);
    else
        ((lookup_v2_t *)(uintptr_t)dlsym(library, "cuGetProcAddress_v2"))(name, &entry, CUDA_VERSION, 0, NULL);
    return entry;
}

static void find_driver(const char *how) {
#ifdef LINKED
    (void)how, (void)look_up;
    cuda.init = cuInit;
    cuda.retain = cuDevicePrimaryCtxRetain;
    cuda.set = cuCtxSetCurrent;
    cuda.alloc = cuMemAlloc_v2;
    cuda.free = cuMemFree_v2;
#else
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail(dlerror(), 0);
    cuda.init = (init_t *)(uintptr_t)look_up(how, library, "cuInit", "cuInit");
    cuda.retain = (retain_t *)(uintptr_t)look_up(how, library, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain");
    cuda.set = (set_t *)(uintptr_t)look_up(how, library, "cuCtxSetCurrent", "cuCtxSetCurrent");
    cuda.alloc = (alloc_t *)(uintptr_t)look_up(how, library, "cuMemAlloc", "cuMemAlloc_v2");
    cuda.free = (free_t *)(uintptr_t)look_up(how, library, "cuMemFree", "cuMemFree_v2");
#endif
}

static void begin(void) {
    void *context;
    int code = cuda.init(0);
    if (code)
        fail("cuInit", code);
    if ((code = cuda.retain(&context, 0)) || (code = cuda.set(context)))
        fail("context", code);
}

static unsigned long fill(size_t step, unsigned long most) {
    unsigned long long pointer;
    unsigned long steps = 0;
    while (steps < most && cuda.alloc(&pointer, step) == 0)
        steps++;
    return steps;
}

static void churn(size_t step) {
    unsigned long long kept[KEPT] = {0};
    for (unsigned long turn = 0;; turn++) {
        unsigned long long *place = &kept[turn % KEPT];
        if (*place)
            cuda.free(*place);
        if (cuda.alloc(place, step))
            *place = 0;
    }
}

/* In hundredths of the card, from a question to NVML that nobody stands before. */
static unsigned int taken_percent(void) {
    static rates_t *rates;
    static void *card;
    unsigned int percent[2];
    if (rates == NULL) {
        void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
        ((start_t *)(uintptr_t)dlsym(library, "nvmlInit_v2"))();
        ((handle_t *)(uintptr_t)dlsym(library, "nvmlDeviceGetHandleByIndex_v2"))(0, &card);
        rates = (rates_t *)(uintptr_t)dlsym(library, "nvmlDeviceGetUtilizationRates");
    }
    rates(card, percent);
    return percent[1];
}

static int contest(size_t step, unsigned int most_percent) {
    unsigned long long pointer;
    int over = 0;
    for (int turn = 0; turn < ROUNDS; turn++) {
        if (cuda.alloc(&pointer, step))
            continue;
        over += taken_percent() > most_percent;
        cuda.free(pointer);
    }
    return over;
}

/* With many live blocks, as in a long-running program. */
static void lap(size_t step) {
    struct timespec before, after;
    unsigned long long pointer;
    fill(step, LIVE_BLOCKS);
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int turn = 0; turn < LAPS; turn++) {
        if (cuda.alloc(&pointer, step))
            fail("cuMemAlloc", turn);
        cuda.free(pointer);
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    printf("%.0f\n", ((after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec)) / LAPS);
}

/* Says that it is there, and waits for a line. */
static void line_up(void) {
    puts("ready");
    fflush(stdout);
    getchar();
}

static void hold(unsigned long steps, size_t step_mib) {
    printf("%lu\n", steps * step_mib);
    fflush(stdout);
    while (getchar() != EOF)
        continue;
}

static int is_action(const char *word, const char *action) {
    return strcmp(word, action) == 0;
}

int main(int count, char **words) {
    if (count < 4)
        fail("expected LOOKUP ACTION STEP_MIB", count);
    const char *action = words[2];
    const size_t step_mib = strtoul(words[3], NULL, 10), step = step_mib << 20;
    find_driver(words[1]);
    begin();
    if (is_action(action, "race") || is_action(action, "contest"))
        line_up();
    if (is_action(action, "churn"))
        churn(step);
    else if (is_action(action, "lap"))
        lap(step);
    else if (is_action(action, "contest"))
        printf("%d\n", contest(step, count > 4 ? (unsigned int)atoi(words[4]) : 100));
    else
        hold(fill(step, is_action(action, "one") ? 1 : -1ul), step_mib);
    return 0;
}
