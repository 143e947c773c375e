/* Where NVIDIA's MPS daemon serves the container, it divides the card between tenants that run at the same moment,
   which no turns can do. Then it is told the share, before the driver starts, and the gate stays open. */
#define _GNU_SOURCE
#include "compute.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PERCENTAGE "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"

_Atomic int mps_is_used;

/* A daemon that is gone leaves its pipe or socket behind, and nobody at the other end. */
static int is_read_by_somebody(const char *pipe) {
    int end = open(pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (end != -1)
        close(end);
    return end != -1;
}

/* Asked as a socket of another sort: whoever listens says so, and is not disturbed. */
static int is_listened_on(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int end = length < (int)sizeof address.sun_path ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    if (end == -1)
        return 0;
    int is_there = connect(end, (struct sockaddr *)&address, sizeof address) == 0 || errno == EPROTOTYPE;
    close(end);
    return is_there;
}

static int has_daemon(void) {
    char path[PATH_MAX];
    struct stat found;
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    snprintf(path, sizeof path, "%s/control", directory ? directory : "/tmp/nvidia-mps");
    if (stat(path, &found))
        return 0;
    return S_ISSOCK(found.st_mode) ? is_listened_on(path) : S_ISFIFO(found.st_mode) && is_read_by_somebody(path);
}

void mps_prepare(void) {
    char text[16];
    if (!has_daemon())
        return;
    atomic_store(&mps_is_used, 1);
    int share = strictest_share(), own = getenv(PERCENTAGE) ? atoi(getenv(PERCENTAGE)) : 100;
    if (share >= own && own > 0)
        return;
    snprintf(text, sizeof text, "%d", share);
    setenv(PERCENTAGE, text, 1);
}
