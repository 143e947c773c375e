/* What the parts of `calibrate` share: a scene, and how an answer is written down. Each line is a name and an answer
   that is the same each time on the same driver. */

#ifndef TESSERA_PROBE_CALIBRATE_H
#define TESSERA_PROBE_CALIBRATE_H

#include "driver.h"

#include <stdio.h>

#define MS ((uint64_t)1000000)
#define MIB ((size_t)1 << 20)
/* What is launched behind this is all there before the first of it begins. */
#define HEAD_START (100 * MS)
#define NON_BLOCKING 1
#define LEGACY NULL

#define SAY(name, format, ...) printf("%s: " format "\n", name, __VA_ARGS__)
#define SAY_CODE(name, call) SAY(name, "%d", call)

void *make_stream(unsigned int flags);
void *make_event(void);

/* Launch a kernel that is busy for so long. Returns the driver's code. */
int spin(void *stream, uint64_t ns);
int launch(void *stream, const char *kernel);

/* Between two events that have passed, in milliseconds. */
double elapsed_ms(void *from, void *to);

/* Free memory of the card less than `before`, in MiB. */
size_t free_bytes(void);
double taken_mib(size_t before);

/* Run a part in a process of its own with the context of the first card, so that what goes wrong in it, and what it
   leaves behind, concerns no other. */
void apart(void (*part)(int), int number);

void calibrate_entries(int number);
void calibrate_memory(int number);
void calibrate_pools(int number);
void calibrate_streams(int number);
void calibrate_waits(int number);
void calibrate_bare_captures(int number);
void calibrate_capture(int number);
void calibrate_graphs(int number);
void calibrate_failure(int number);

/* How many there are of calibrate_capture. */
#define CAPTURES 32

#endif
