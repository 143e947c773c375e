/* The driver's own entries, by table. Found by the address that its libraries export, and swapped by that address, so
   versions, variants for streams of threads and codes stay the driver's own. */
#define _GNU_SOURCE
#include "tessera.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

real_t real;

typedef struct {
    const char *name;
    void **entry;               /* where the real one is kept */
    void *own;                  /* what stands before it; NULL for one that is only asked */
} row_t;

#define HOOKED_ROW(entry_name) {#entry_name, (void **)&real.entry_name, (void *)(uintptr_t)&entry_name},
#define ASKED_ROW(entry_name) {#entry_name, (void **)&real.entry_name, NULL},
static const row_t cuda_rows[] = {CUDA_HOOKED(HOOKED_ROW) CUDA_ASKED(ASKED_ROW)
                                 LAUNCH_HOOKED(HOOKED_ROW) LAUNCH_ASKED(ASKED_ROW)};
static const row_t nvml_rows[] = {NVML_HOOKED(HOOKED_ROW) NVML_ASKED(ASKED_ROW)};

typedef struct {
    const char *file;
    const row_t *rows;
    size_t count;
    _Atomic int is_loaded;
} library_t;

static library_t cuda = {"libcuda.so.1", cuda_rows, sizeof cuda_rows / sizeof *cuda_rows, 0};
static library_t nvml = {"libnvidia-ml.so.1", nvml_rows, sizeof nvml_rows / sizeof *nvml_rows, 0};

/* Loading is idempotent, so threads that race for it write the same addresses. */
static int load(library_t *library, int flags) {
    if (atomic_load_explicit(&library->is_loaded, memory_order_acquire))
        return 0;
    dlsym_t *look_up = real_dlsym();
    void *handle = look_up ? dlopen(library->file, RTLD_LAZY | flags) : NULL;
    if (handle == NULL)
        return -1;
    for (size_t row = 0; row < library->count; row++)
        *library->rows[row].entry = look_up(handle, library->rows[row].name);
    atomic_store_explicit(&library->is_loaded, 1, memory_order_release);
    return 0;
}

int load_cuda(void) {
    return load(&cuda, 0);
}

int load_nvml(void) {
    return load(&nvml, 0);
}

int find_cuda(void) {
    return load(&cuda, RTLD_NOLOAD);
}

int find_nvml(void) {
    return load(&nvml, RTLD_NOLOAD);
}

/* The row of an entry, be it the driver's or the library's own. */
static const row_t *row_with(const library_t *library, const void *entry) {
    for (size_t row = 0; row < library->count; row++) {
        const row_t *one = &library->rows[row];
        if (one->own && (*one->entry == entry || one->own == entry))
            return one;
    }
    return NULL;
}

void *stand_before(void *entry) {
    if (entry == NULL)
        return NULL;
    const row_t *row = row_with(&cuda, entry);
    row = row ? row : row_with(&nvml, entry);
    if (row == NULL)
        return entry;
    return *row->entry ? row->own : NULL;
}

static const row_t *row_of(const library_t *library, const char *name) {
    for (size_t row = 0; row < library->count; row++)
        if (library->rows[row].own && strcmp(library->rows[row].name, name) == 0)
            return &library->rows[row];
    return NULL;
}

int has_entry(const char *name, void **entry) {
    const row_t *row = row_of(&cuda, name);
    row = row ? row : row_of(&nvml, name);
    if (row)
        *entry = *row->entry;
    return row != NULL;
}
