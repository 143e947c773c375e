/* What happens when the container has no memory left: the program is told so, as it would be by a full card. Where the
   tile says so instead, the container ends: a sentence for people, and then all its processes that use a card. */
#define _GNU_SOURCE
#include "memory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LOG_VARIABLE "TESSERA_TERMINATION_LOG"
#define LOG_OF_KUBERNETES "/dev/termination-log"
#define LONGEST_SENTENCE 384

/* A number may be of another namespace, or have come again. Whoever has the region mapped is one of ours. */
static int has_region(uint32_t pid) {
    char path[64], line[512], wanted[64];
    struct stat region;
    if (region_identity(&region))
        return 0;
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    snprintf(wanted, sizeof wanted, " %02x:%02x %lu ", major(region.st_dev), minor(region.st_dev),
             (unsigned long)region.st_ino);
    FILE *maps = fopen(path, "re");
    int is_found = 0;
    while (maps && !is_found && fgets(line, sizeof line, maps))
        is_found = strstr(line, wanted) != NULL;
    if (maps)
        fclose(maps);
    return is_found;
}

static void end_all(void) {
    for (int slot = 0; slot < (int)region_slot_count(); slot++) {
        uint32_t pid = (uint32_t)atomic_load(&region_here.file->slots[slot].pid);
        if (pid != (uint32_t)getpid() && region_slot_is_alive(slot) && has_region(pid))
            kill((pid_t)pid, SIGKILL);
    }
    kill(getpid(), SIGKILL);
}

static void leave_message(const char *sentence) {
    const char *chosen = getenv(LOG_VARIABLE);
    int file = open(chosen ? chosen : LOG_OF_KUBERNETES, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    if (file == -1)
        return;
    ssize_t written = write(file, sentence, strlen(sentence));
    (void)written;
    close(file);
}

static void terminate(int card, uint64_t bytes) {
    char sentence[LONGEST_SENTENCE];
    snprintf(sentence, sizeof sentence,
             "%s: the container holds %lu MiB of its %lu MiB and asked for %lu MiB more, so it ends; "
             "ask for more memory of the card, or take less",
             region_uuid(card), (unsigned long)(region_used(card) >> 20), (unsigned long)(limit_of(card) >> 20),
             (unsigned long)(round_up(bytes, (uint64_t)1 << 20) >> 20));
    say("%s", sentence);
    leave_message(sentence);
    end_all();
}

CUresult refuse(int card, uint64_t bytes) {
    atomic_fetch_add(&region_figures(card)->refusals, 1);
    if (refusal_is_the_end())
        terminate(card, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}
