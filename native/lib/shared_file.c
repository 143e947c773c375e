/* The file behind the region: mapped, with locks on single bytes that the kernel lets go of at any death.

   A program may close descriptors that it does not know, and get the same number again for a file of its own. So before
   each use it is looked at whether the descriptor is still the file, and if not, the file is opened again. The mapping
   stays either way, and with it the locks: they belong to the opened file, which lives until nothing has it open or
   mapped. */
#define _GNU_SOURCE
#include "tessera.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 10000
#define LONGEST_PAUSE_MS 16

static int is_it(const shared_t *file, int descriptor) {
    struct stat found;
    return descriptor != -1 && fstat(descriptor, &found) == 0 && found.st_ino == file->identity.st_ino &&
           found.st_dev == file->identity.st_dev;
}

static int open_again(shared_t *file, int former) {
    int descriptor = open(file->path, O_RDWR | O_CLOEXEC);
    int is_taken = is_it(file, descriptor) && atomic_compare_exchange_strong(&file->descriptor, &former, descriptor);
    if (descriptor != -1 && !is_taken)
        close(descriptor);
    return is_taken ? descriptor : former;
}

/* -1 where it cannot be had any more. */
static int descriptor_of(shared_t *file) {
    int descriptor = atomic_load(&file->descriptor);
    if (file->mapping && !is_it(file, descriptor))
        descriptor = open_again(file, descriptor);
    return is_it(file, descriptor) ? descriptor : -1;
}

/* A new file gets its size, and its blocks, because a full disk would otherwise end the program that writes to it. */
static const char *make_room(const shared_t *file, size_t bytes) {
    struct stat found;
    if (fstat(file->descriptor, &found) == -1)
        return strerror(errno);
    if (found.st_size != 0 && (size_t)found.st_size != bytes)
        return "it is no region of this version, remove it";
    if (found.st_size == 0 && ftruncate(file->descriptor, (off_t)bytes) == -1)
        return strerror(errno);
    if (fallocate(file->descriptor, 0, 0, (off_t)bytes) == -1 && errno == ENOSPC)
        return strerror(errno);
    return NULL;
}

/* One that is there is opened as such: in a /tmp with the sticky bit a kernel may refuse O_CREAT on another's file-> */
static int open_or_make(const char *path) {
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    return descriptor == -1 && errno == ENOENT ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : descriptor;
}

const char *shared_open(shared_t *file, const char *path, size_t bytes, void **mapping) {
    snprintf(file->path, sizeof file->path, "%s", path);
    file->descriptor = open_or_make(path);
    if (file->descriptor == -1 || fstat(file->descriptor, &file->identity) == -1)
        return strerror(errno);
    fchmod(file->descriptor, 0666);      /* for processes of other users; refused to all but its owner */
    const char *problem = make_room(file, bytes);
    if (problem)
        return problem;
    *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor, 0);
    if (*mapping == MAP_FAILED)
        return strerror(errno);
    file->mapping = *mapping;
    file->bytes = bytes;
    return NULL;
}

void shared_close(shared_t *file) {
    if (file->mapping)
        munmap(file->mapping, file->bytes);
    if (is_it(file, file->descriptor))
        close(file->descriptor);
    file->mapping = NULL;
    file->descriptor = -1;
}

static int lock_byte(shared_t *file, int command, short type, off_t byte) {
    struct flock wish = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int descriptor = descriptor_of(file);
    int result = descriptor == -1 ? -1 : fcntl(descriptor, command, &wish);
    return command == F_OFD_GETLK && result == 0 ? wish.l_type != F_UNLCK : result;
}

/* Asks less and less often, because a thousand that ask at once keep the one from going on that has it. */
int shared_lock(shared_t *file, off_t byte) {
    long pause_ms = 1;
    for (long waited_ms = 0; waited_ms < PATIENCE_MS && descriptor_of(file) != -1; waited_ms += pause_ms) {
        if (lock_byte(file, F_OFD_SETLK, F_WRLCK, byte) == 0)
            return 0;
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return -1;
        struct timespec pause = {.tv_nsec = pause_ms * 1000000};
        nanosleep(&pause, NULL);
        pause_ms = pause_ms < LONGEST_PAUSE_MS ? 2 * pause_ms : pause_ms;
    }
    return -1;
}

int shared_keep(shared_t *file, off_t byte) {
    return lock_byte(file, F_OFD_SETLK, F_WRLCK, byte);
}

void shared_unlock(shared_t *file, off_t byte) {
    lock_byte(file, F_OFD_SETLK, F_UNLCK, byte);
}

int shared_is_free(shared_t *file, off_t byte) {
    return lock_byte(file, F_OFD_GETLK, F_WRLCK, byte) == 0;
}
