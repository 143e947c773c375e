/* What a driver answers, as lines of text: the same program asks a card and the simulated driver, and the answers are
   compared. It is to be the only program on the first card.

       calibrate > answers.txt */
#define _GNU_SOURCE
#include "calibrate.h"

#include <sys/wait.h>
#include <unistd.h>

void *make_stream(unsigned int flags) {
    void *stream;
    MUST(cuda.cuStreamCreate(&stream, flags));
    return stream;
}

void *make_event(void) {
    void *event;
    MUST(cuda.cuEventCreate(&event, 0));
    return event;
}

int spin(void *stream, uint64_t ns) {
    void *parameters[] = {&ns};
    return cuda.cuLaunchKernel(find_kernel("spin"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

int launch(void *stream, const char *kernel) {
    return cuda.cuLaunchKernel(find_kernel(kernel), 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

double elapsed_ms(void *from, void *to) {
    float elapsed = -1;
    MUST(cuda.cuEventElapsedTime(&elapsed, from, to));
    return elapsed;
}

size_t free_bytes(void) {
    size_t free_now, total;
    MUST(cuda.cuMemGetInfo_v2(&free_now, &total));
    return free_now;
}

double taken_mib(size_t before) {
    return ((double)before - (double)free_bytes()) / (double)MIB;
}

void apart(void (*section)(int), int number) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        enter_context();
        MUST(launch(LEGACY, "empty"));
        MUST(cuda.cuCtxSynchronize());
        section(number);
        fflush(stdout);
        _exit(0);
    }
    if (child == -1 || waitpid(child, &status, 0) == -1 || status != 0)
        printf("the rest of this part: ended with %d\n", status);
}

int main(void) {
    apart(calibrate_entries, 0);
    apart(calibrate_memory, 0);
    apart(calibrate_pools, 0);
    apart(calibrate_streams, 0);
    apart(calibrate_waits, 0);
    apart(calibrate_bare_captures, 0);
    for (int number = 0; number < CAPTURES; number++)
        apart(calibrate_capture, number);
    apart(calibrate_graphs, 0);
    apart(calibrate_failure, 0);
    return 0;
}
