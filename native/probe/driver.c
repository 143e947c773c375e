#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

cuda_t cuda;
static void *library;

const char kernels[] = ".version 7.0\n"
                       ".target sm_70\n"
                       ".address_size 64\n"
                       ".visible .entry spin(.param .u64 nanoseconds)\n"
                       "{\n"
                       "    .reg .u64 %begin, %now, %past, %wanted;\n"
                       "    .reg .pred %goes_on;\n"
                       "    ld.param.u64 %wanted, [nanoseconds];\n"
                       "    mov.u64 %begin, %globaltimer;\n"
                       "again:\n"
                       "    mov.u64 %now, %globaltimer;\n"
                       "    sub.u64 %past, %now, %begin;\n"
                       "    setp.lt.u64 %goes_on, %past, %wanted;\n"
                       "    @%goes_on bra again;\n"
                       "    ret;\n"
                       "}\n"
                       ".visible .entry empty()\n"
                       "{\n"
                       "    ret;\n"
                       "}\n"
                       ".visible .entry trap()\n"
                       "{\n"
                       "    .reg .u64 %nowhere;\n"
                       "    mov.u64 %nowhere, 16;\n"
                       "    st.global.u64 [%nowhere], %nowhere;\n"
                       "    ret;\n"
                       "}\n";

void fail(const char *what, int code) {
    fprintf(stderr, "%s: %d\n", what, code);
    exit(1);
}

void *find_entry(const char *name) {
    return dlsym(library, name);
}

static void *must_find(const char *name) {
    void *entry = find_entry(name);
    if (entry == NULL)
        fail(name, -1);
    return entry;
}

void find_driver(void) {
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail(dlerror(), -1);
#define AS_LOOKUP(name, parameters) *(void **)&cuda.name = must_find(#name);
    ENTRIES(AS_LOOKUP)
}

void enter_context(void) {
    void *context;
    find_driver();
    MUST(cuda.cuInit(0));
    MUST(cuda.cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuda.cuCtxSetCurrent(context));
}

void *find_kernel(const char *name) {
    static void *module;
    void *function;
    if (module == NULL)
        MUST(cuda.cuModuleLoadData(&module, kernels));
    MUST(cuda.cuModuleGetFunction(&function, module, name));
    return function;
}

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}
