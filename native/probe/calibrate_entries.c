/* Which entry cuGetProcAddress gives for a name and a version of CUDA. The simulated driver's own list says what to ask
   for; the answer is the name under which the driver exports what it gave. */
#define _GNU_SOURCE
#include "calibrate.h"

#include "../sim/cuda_entries.h"

#include <dlfcn.h>
#include <string.h>

#define PER_THREAD 2
#define NEWEST 13000

typedef struct {
    const char *name;
    int since;
    const char *entry, *per_thread;
} question_t;

#define AS_QUESTION(name, since, entry, per_thread) {name, since, #entry, #per_thread},
static const question_t questions[] = {ROWS(AS_QUESTION)};

#define QUESTIONS (sizeof questions / sizeof *questions)

static const char *name_of(const char *name, int version, uint64_t flags, const char *expected) {
    void *found = NULL;
    if (cuda.cuGetProcAddress_v2(name, &found, version, flags, NULL) || found == NULL)
        return "none";
    if (found == find_entry(expected))
        return expected;
    Dl_info about;
    return dladdr(found, &about) && about.dli_sname ? about.dli_sname : "one without a name";
}

static void say_entry(const question_t *question, int version) {
    printf("%s in CUDA %d.%d: %s, %s\n", question->name, version / 1000, version % 1000 / 10,
           name_of(question->name, version, 0, question->entry),
           name_of(question->name, version, PER_THREAD, question->per_thread));
}

/* Those of which a newer program gets others than the last of the list. */
static void say_newer(void) {
    for (size_t place = 0; place < QUESTIONS; place++) {
        const question_t *question = &questions[place];
        int is_last = place + 1 == QUESTIONS || strcmp(question[1].name, question->name) != 0;
        const char *found = name_of(question->name, NEWEST, 0, question->entry);
        if (is_last && strcmp(found, question->entry) != 0)
            say_entry(question, NEWEST);
    }
}

void calibrate_entries(int number) {
    (void)number;
    for (size_t place = 0; place < QUESTIONS; place++)
        say_entry(&questions[place], questions[place].since);
    say_newer();
    SAY("a name that no driver has", "%s", name_of("cuTessera", NEWEST, 0, "cuTessera"));
    SAY("cuLaunchKernelEx in CUDA 11.5", "%s", name_of("cuLaunchKernelEx", 11050, 0, "cuLaunchKernelEx"));
    say_entry(&(question_t){"cuLaunchKernel", 0, "cuLaunchKernel", "cuLaunchKernel_ptsz"}, 7000);
    say_entry(&(question_t){"cuMemcpyHtoD", 0, "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds"}, 7000);
    say_entry(&(question_t){"cuMemcpyHtoDAsync", 0, "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2_ptsz"}, 7000);
    say_entry(&(question_t){"cuMemsetD8", 0, "cuMemsetD8_v2", "cuMemsetD8_v2_ptds"}, 7000);
    say_entry(&(question_t){"cuMemsetD8Async", 0, "cuMemsetD8Async", "cuMemsetD8Async_ptsz"}, 7000);
    say_entry(&(question_t){"cuGraphInstantiate", 0, "cuGraphInstantiate_v2", "cuGraphInstantiate_v2"}, 12000);
}
