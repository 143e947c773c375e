/* Memory that several processes have: a block by its handle (IPC). Whoever made it is charged, whoever opens it is not.

   A block that is shared gets a file behind it, which other processes open by way of /proc: as with a driver, they must
   be able to see the process. */
#define _GNU_SOURCE
#include "cuda_blocks.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OS_PAGE 4096
#define LAZY_PEER_ACCESS 1

typedef struct {
    union {
        char bytes[64];
        struct {
            uint64_t size;
            int pid, file;
            ino_t inode;        /* so that another file under the same number is not taken for it */
        } of;
    };
} CUipcMemHandle;

int make_memory_file(const char *name, size_t bytes) {
    int file = (int)syscall(SYS_memfd_create, name, 1u /* closed by exec */);
    if (file != -1 && ftruncate(file, (off_t)bytes) == -1) {
        close(file);
        file = -1;
    }
    return file;
}

/* Pages that nobody has written are left out, because a block may be larger than the machine. */
static int copy_into(int file, const char *begin, size_t bytes) {
    unsigned char *is_there = malloc(bytes / OS_PAGE);
    if (is_there == NULL || mincore((void *)(uintptr_t)begin, bytes, is_there)) {
        free(is_there);
        return -1;
    }
    for (size_t page = 0; page < bytes / OS_PAGE; page++)
        if (is_there[page] & 1 && pwrite(file, begin + page * OS_PAGE, OS_PAGE, (off_t)(page * OS_PAGE)) != OS_PAGE) {
            free(is_there);
            return -1;
        }
    free(is_there);
    return 0;
}

/* With the driver locked. Its content and its address stay. */
static int back_by_file(block_t *block) {
    char *begin = (char *)(uintptr_t)block->begin;
    if (block->file != -1)
        return 0;
    int file = make_memory_file(block->card->uuid, block->mapped);
    if (file == -1 || copy_into(file, begin, block->mapped) ||
        mmap(begin, block->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
        close(file);
        return -1;
    }
    block->file = file;
    return 0;
}

API CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    struct stat about;
    CUresult result = INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    block_t *block = find_block(pointer);
    if (handle && block && block->source == OF_CARD) {
        result = back_by_file(block) || fstat(block->file, &about) ? OUT_OF_MEMORY : SUCCESS;
        memset(handle, 0, sizeof *handle);
        handle->of.size = block->asked;
        handle->of.pid = getpid();
        handle->of.file = block->file;
        handle->of.inode = result == SUCCESS ? about.st_ino : 0;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

static int open_shared(const CUipcMemHandle *handle) {
    char path[64];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", handle->of.pid, handle->of.file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file != -1 && (fstat(file, &about) || about.st_ino != handle->of.inode)) {
        close(file);
        file = -1;
    }
    return file;
}

/* A process cannot open what it has itself. */
API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
    if (pointer == NULL || flags & ~(unsigned int)LAZY_PEER_ACCESS)
        return INVALID_VALUE;
    if (handle.of.pid == getpid())
        return INVALID_CONTEXT;
    int file = open_shared(&handle);
    if (file == -1)
        return INVALID_VALUE;
    CUresult result = make_block_of(IMPORTED, pointer, handle.of.size, NULL, file);
    if (result != SUCCESS)
        close(file);
    return result;
}

API CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
    pthread_mutex_lock(&driver.mutex);
    block_t *block = find_block(pointer);
    int is_open = block && block->begin == pointer && block->source == IMPORTED;
    if (is_open)
        remove_block(block);
    pthread_mutex_unlock(&driver.mutex);
    return is_open ? SUCCESS : INVALID_VALUE;
}
