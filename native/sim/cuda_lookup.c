/* Entries by the name without a version, for the CUDA version that a program was built for, and for streams of threads
   where it asks for them. What is found are the addresses that the library exports. */
#define _GNU_SOURCE
#include "cuda.h"
#include "cuda_entries.h"

#include <string.h>

#define PER_THREAD 2
#define STREAMS_OF_THREADS 7000    /* the version that brought them */
#define VERSION_NOT_SUFFICIENT 2
#define SYMBOL_NOT_FOUND 1

/* Only their addresses are wanted here, so what they take is not said again. */
#define AS_ADDRESS(name, since, entry, per_thread)                                                                     \
    extern API void entry(void);                                                                                       \
    extern API void per_thread(void);
ROWS(AS_ADDRESS)

#define AS_ROW(name, since, entry, per_thread) {name, since, (void *)(uintptr_t)&entry, (void *)(uintptr_t)&per_thread},

static const struct {
    const char *name;
    int since;
    void *entry, *per_thread;
} rows[] = {ROWS(AS_ROW)};

/* The newest one that both the program and the driver know. */
CUresult look_up(const char *name, void **entry, int version, uint64_t flags, int *status) {
    int best = 0;
    if (name == NULL || entry == NULL)
        return INVALID_VALUE;
    *entry = NULL;
    *status = SYMBOL_NOT_FOUND;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        if (strcmp(rows[row].name, name) != 0)
            continue;
        void *found = flags & PER_THREAD ? rows[row].per_thread : rows[row].entry;
        int is_too_old = found != rows[row].entry && version < STREAMS_OF_THREADS;
        if (is_too_old || rows[row].since > version || rows[row].since > driver_version()) {
            *status = best ? 0 : VERSION_NOT_SUFFICIENT;
            continue;
        }
        if (rows[row].since < best)
            continue;
        best = rows[row].since;
        *entry = found;
        *status = 0;
    }
    return *entry ? SUCCESS : NOT_FOUND;
}
