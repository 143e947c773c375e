#define _GNU_SOURCE
#include "tessera.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LONGEST_LINE 512

void say(const char *format, ...) {
    char line[LONGEST_LINE];
    int before = errno, length = snprintf(line, sizeof line, "tessera: ");
    va_list values;
    va_start(values, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, values);
    va_end(values);
    if (length > LONGEST_LINE - 2)
        length = LONGEST_LINE - 2;
    line[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
    errno = before;
}
