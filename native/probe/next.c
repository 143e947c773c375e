/* A library for tests that stands before a function of the C library, as allocators and tracers do. It is found by
   whoever looks for the next one after another library, but its own next one is the C library's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

__attribute__((visibility("default"))) int getpagesize(void);

int getpagesize(void) {
    int (*next)(void) = (int (*)(void))(uintptr_t)dlsym(RTLD_NEXT, "getpagesize");
    return next == getpagesize ? -1 : next() + 1;
}
