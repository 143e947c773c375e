/* The number of this process on its node, asked of the node's agent: in a container it cannot be found out otherwise,
   and NVML knows processes by it. Nothing depends on an answer, and nobody waits long for one. */
#define _GNU_SOURCE
#include "tessera.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATH_VARIABLE "TESSERA_AGENT"
#define MOUNTED_SOCKET "/run/tessera/agent/socket"
#define LONGEST_ANSWER 64
#define PAUSE_NS 5000000

/* Where many ask at once there may be no place in the agent's line just now. */
static int connect_until(int connection, const struct sockaddr_un *address, uint64_t until_ms) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    while (connect(connection, (const struct sockaddr *)address, sizeof *address) == -1) {
        if (errno != EAGAIN || coarse_ms() >= until_ms)
            return -1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* Where a path is too long for an address, the socket is opened as a file and reached through that. */
static int write_address(struct sockaddr_un *address, const char *path, int *opened) {
    const size_t room = sizeof address->sun_path;
    *opened = strlen(path) < room ? -1 : open(path, O_PATH | O_CLOEXEC);
    if (*opened == -1)
        return snprintf(address->sun_path, room, "%s", path) < (int)room ? 0 : -1;
    snprintf(address->sun_path, room, "/proc/self/fd/%d", *opened);
    return 0;
}

static int reach(uint64_t until_ms) {
    const char *chosen = getenv(PATH_VARIABLE);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int opened, is_written = write_address(&address, chosen ? chosen : MOUNTED_SOCKET, &opened) == 0;
    int connection = is_written ? socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
    if (connection != -1 && connect_until(connection, &address, until_ms)) {
        close(connection);
        connection = -1;
    }
    if (opened != -1)
        close(opened);
    return connection;
}

/* `pid`, a number, and the end of the line. */
static uint64_t read_pid(const char *answer) {
    char *end;
    if (strncmp(answer, "pid ", 4) != 0 || answer[4] < '1' || answer[4] > '9')
        return 0;
    unsigned long pid = strtoul(answer + 4, &end, 10);
    return *end == '\n' && pid <= INT_MAX ? pid : 0;
}

static int is_pending(int connection, uint64_t until_ms) {
    uint64_t now_ms = coarse_ms();
    struct pollfd wish = {.fd = connection, .events = POLLIN};
    return now_ms < until_ms && poll(&wish, 1, (int)(until_ms - now_ms)) == 1;
}

uint64_t ask_host_pid(int patience_ms) {
    char answer[LONGEST_ANSWER] = "";
    size_t length = 0;
    const uint64_t until_ms = coarse_ms() + (uint64_t)patience_ms;
    int before = errno, connection = reach(until_ms);
    while (connection != -1 && length < sizeof answer - 1 && is_pending(connection, until_ms)) {
        ssize_t more = recv(connection, answer + length, sizeof answer - 1 - length, MSG_DONTWAIT);
        if (more <= 0)
            break;
        length += (size_t)more;
    }
    if (connection != -1)
        close(connection);
    errno = before;
    return read_pid(answer);
}
