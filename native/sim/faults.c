#define _GNU_SOURCE
#include "faults.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "faults"
#define LONGEST_LINE 128

void faults_tell(const card_t *card, int xid) {
    char line[LONGEST_LINE];
    int length = snprintf(line, sizeof line, "%s %d\n", card->uuid, xid);
    int file = machine_open_shared(FILE_NAME);
    if (file == -1)
        return;
    fcntl(file, F_SETFL, O_APPEND);
    if (write(file, line, (size_t)length) != length)
        fprintf(stderr, "simulated driver: a fault of %s could not be told\n", card->uuid);
    close(file);
}

off_t faults_end(void) {
    struct stat about = {0};
    int file = machine_open_shared(FILE_NAME);
    if (file == -1)
        return 0;
    fstat(file, &about);
    close(file);
    return about.st_size;
}

static const card_t *card_of(const char *uuid) {
    for (int position = 0; position < machine_card_count(); position++)
        if (strcmp(machine_card(position)->uuid, uuid) == 0)
            return machine_card(position);
    return NULL;
}

int faults_next(off_t *seen, const card_t **card) {
    char line[LONGEST_LINE], uuid[64], *end;
    int file = machine_open_shared(FILE_NAME), xid = 0;
    if (file == -1)
        return 0;
    while (xid == 0) {
        ssize_t length = pread(file, line, sizeof line - 1, *seen);
        line[length > 0 ? length : 0] = '\0';
        if ((end = strchr(line, '\n')) == NULL)
            break;              /* nothing, or not all of it yet */
        *seen += end + 1 - line;
        if (sscanf(line, "%63s %d", uuid, &xid) != 2 || (*card = card_of(uuid)) == NULL)
            xid = 0;
    }
    close(file);
    return xid;
}
