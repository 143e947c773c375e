/* Where NVIDIA's MPS daemon serves the container, it divides the card between tenants that run at the same moment,
   which no turns can do. Then it is told the share, before the driver starts, and the gate stays open. */
#define _GNU_SOURCE
#include "compute.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PERCENTAGE "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"

_Atomic int mps_is_used;

static int has_daemon(void) {
    char path[PATH_MAX];
    struct stat found;
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    snprintf(path, sizeof path, "%s/control", directory ? directory : "/tmp/nvidia-mps");
    return stat(path, &found) == 0 && (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode));
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
