/* Memory by handle that was exported as a file. It lives as long as the file is open anywhere, also when its handles
   are released and its mappings gone, and so long it stays charged.

   Whether a file is still open, an epoll instance knows: it keeps none open, forgets one with its last descriptor, and
   the kernel lists what it has not forgotten. Where there is no such list, a file is held to be open as long as its
   descriptor in this process is. */
#define _GNU_SOURCE
#include "memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define POSIX_FILE 1
#define OWN_FILE 0              /* the number of one that is never exported */
#define EXPORTS_A_LOOK 64       /* after which those that are closed are forgotten */

/* What is charged for files alone. */
typedef struct {
    block_t block;
    int files;
} afloat_t;

typedef struct exported {
    uint64_t number;
    CUmemGenericAllocationHandle handle;
    int descriptor, is_watched;
    int is_open;                /* as far as the last look could tell */
    afloat_t *afloat;           /* NULL while the handle is in use */
    struct exported *next;
} exported_t;

static struct {
    pthread_mutex_t mutex;
    exported_t *first;
    uint64_t last_number;
    int watch, own_file;        /* descriptors */
} exports = {.mutex = PTHREAD_MUTEX_INITIALIZER, .watch = -1, .own_file = -1};

static _Atomic int is_used;     /* nobody looks for exports before there are some */
static _Atomic int afloat_count;

/* ---- which files are open ------------------------------------------------------------------------------------- */

static int tell_watch(int what, int descriptor, uint64_t number) {
    struct epoll_event event = {.events = 0, .data = {.u64 = number}};
    return epoll_ctl(exports.watch, what, descriptor, &event) == 0;
}

/* A program may have closed both descriptors, and opened files of its own under these numbers. */
static int is_watching(void) {
    return exports.watch != -1 && tell_watch(EPOLL_CTL_MOD, exports.own_file, OWN_FILE);
}

static void begin_watching(void) {
    if (is_watching())
        return;
    for (exported_t *one = exports.first; one; one = one->next)
        one->is_watched = 0;
    exports.watch = epoll_create1(EPOLL_CLOEXEC);
    exports.own_file = eventfd(0, EFD_CLOEXEC);
    tell_watch(EPOLL_CTL_ADD, exports.own_file, OWN_FILE);
}

/* Which numbers are listed, from the oldest export on. */
typedef struct {
    uint64_t oldest;
    unsigned char *is_there;
} listed_t;

/* Returns whether there is a list. */
static int read_list(listed_t *listed) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", exports.watch);
    FILE *list = fopen(path, "re");
    while (list && fgets(line, sizeof line, list)) {
        const char *number = strncmp(line, "tfd:", 4) == 0 ? strstr(line, "data:") : NULL;
        if (number == NULL)
            continue;
        uint64_t found = strtoull(number + strlen("data:"), NULL, 16);
        if (found >= listed->oldest && found <= exports.last_number)
            listed->is_there[found - listed->oldest] = 1;
    }
    if (list)
        fclose(list);
    return list != NULL;
}

/* The list of exports has the newest first. */
static void look_at_files(void) {
    listed_t listed = {.oldest = exports.last_number};
    for (const exported_t *one = exports.first; one; one = one->next)
        listed.oldest = one->number;
    listed.is_there = calloc(exports.last_number - listed.oldest + 1, 1);
    int is_listed = listed.is_there && is_watching() && read_list(&listed);
    for (exported_t *one = exports.first; one; one = one->next)
        one->is_open = one->is_watched && is_listed ? listed.is_there[one->number - listed.oldest]
                                                    : fcntl(one->descriptor, F_GETFD) != -1;
    free(listed.is_there);
}

/* ---- what is charged for them --------------------------------------------------------------------------------- */

/* Forget files that are closed. Returns how many blocks nothing is left of. */
static int let_go_of_closed(void) {
    int count = 0;
    for (exported_t **link = &exports.first; *link;) {
        exported_t *one = *link;
        if (one->is_open) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        if (one->afloat && --one->afloat->files == 0) {
            upkeep_expect_growth(one->afloat->block.card);
            give_back_block(one->afloat->block.card, one->afloat->block.bytes);
            free(one->afloat);
            atomic_fetch_sub(&afloat_count, 1);
            count++;
        }
        free(one);
    }
    return count;
}

int settle_exports(void) {
    if (atomic_load_explicit(&afloat_count, memory_order_relaxed) == 0)
        return 0;
    pthread_mutex_lock(&exports.mutex);
    look_at_files();
    int count = let_go_of_closed();
    pthread_mutex_unlock(&exports.mutex);
    return count;
}

static int count_files_of(CUmemGenericAllocationHandle handle) {
    int files = 0;
    for (const exported_t *one = exports.first; one; one = one->next)
        files += one->afloat == NULL && one->handle == handle;
    return files;
}

/* With the mutex. Returns 0, or -1 where the handle has no file. */
static int set_afloat(const block_t *block) {
    int files = count_files_of(block->key);
    afloat_t *afloat = files ? malloc(sizeof *afloat) : NULL;
    if (afloat == NULL)
        return -1;
    *afloat = (afloat_t){*block, files};
    atomic_fetch_add(&afloat_count, 1);
    for (exported_t *one = exports.first; one; one = one->next)
        if (one->afloat == NULL && one->handle == block->key)
            one->afloat = afloat;
    return 0;
}

/* Whether its files are open is found out when somebody needs to know. */
void give_back_handle(const block_t *block) {
    int is_afloat = 0;
    if (atomic_load_explicit(&is_used, memory_order_relaxed)) {
        pthread_mutex_lock(&exports.mutex);
        is_afloat = set_afloat(block) == 0;
        pthread_mutex_unlock(&exports.mutex);
    }
    if (is_afloat)
        return;
    if (block->is_exported)
        upkeep_expect_growth(block->card);
    give_back_block(block->card, block->bytes);
}

int take_back_exported(int descriptor, CUmemGenericAllocationHandle handle) {
    afloat_t *afloat = NULL;
    if (atomic_load_explicit(&afloat_count, memory_order_relaxed) == 0)
        return 0;
    pthread_mutex_lock(&exports.mutex);
    for (const exported_t *one = exports.first; one; one = one->next)
        if (one->descriptor == descriptor && one->afloat)
            afloat = one->afloat;
    for (exported_t *one = exports.first; afloat && one; one = one->next)
        if (one->afloat == afloat) {
            one->afloat = NULL;
            one->handle = handle;
        }
    pthread_mutex_unlock(&exports.mutex);
    if (afloat == NULL)
        return 0;
    atomic_fetch_sub(&afloat_count, 1);
    afloat->block.key = handle;
    blocks_put(afloat->block);
    free(afloat);
    return 1;
}

/* ---- exporting ------------------------------------------------------------------------------------------------ */

/* A file that has another's descriptor was opened after the other was closed. */
static void forget_former(int descriptor) {
    for (exported_t *one = exports.first; one; one = one->next)
        one->is_open &= one->is_watched || one->descriptor != descriptor;
    let_go_of_closed();
}

static void remember(int descriptor, CUmemGenericAllocationHandle handle) {
    exported_t *one = malloc(sizeof *one);
    if (one == NULL)
        return;
    blocks_mark_exported(HANDLE, handle);
    pthread_mutex_lock(&exports.mutex);
    begin_watching();
    if (exports.last_number % EXPORTS_A_LOOK == 0)
        look_at_files();
    forget_former(descriptor);
    *one = (exported_t){++exports.last_number, handle, descriptor, 0, 1, NULL, exports.first};
    one->is_watched = tell_watch(EPOLL_CTL_ADD, descriptor, one->number);
    exports.first = one;
    pthread_mutex_unlock(&exports.mutex);
    atomic_store(&is_used, 1);
}

CUresult cuMemExportToShareableHandle(void *exported, CUmemGenericAllocationHandle handle, int type,
                                      unsigned long long flags) {
    CUresult result = CALL(cuMemExportToShareableHandle, exported, handle, type, flags);
    if (result == CUDA_SUCCESS && type == POSIX_FILE)
        remember(*(int *)exported, handle);
    return result;
}

/* A child has the files and pays for none of them. */
void forget_exports(void) {
    pthread_mutex_init(&exports.mutex, NULL);
    if (is_watching()) {
        close(exports.watch);
        close(exports.own_file);
    }
    for (exported_t *one = exports.first, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    exports.first = NULL;
    exports.watch = exports.own_file = -1;
    atomic_store(&is_used, 0);
    atomic_store(&afloat_count, 0);
}
