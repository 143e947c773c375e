/* How programs come by entries of the driver, other than by being linked to it: dlsym, dlvsym and cuGetProcAddress.

   The real lookup goes first; what it finds is swapped if it is an entry that the library stands before. A lookup of
   anything else is passed on with the caller's own return address, because RTLD_NEXT means next after the caller. */
#define _GNU_SOURCE
#include "compute.h"

#include <dlfcn.h>

#define PASS_ON __attribute__((musttail)) return

static int is_of_driver(const char *name) {
    if (name[0] == 'c')
        return name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
    return name[0] == 'n' && name[1] == 'v' && name[2] == 'm' && name[3] == 'l';
}

static void find_library_of(const char *name) {
    if (name[0] == 'c')
        find_cuda();
    else
        find_nvml();
}

/* A lookup that must fail, so that dlerror says something: programs rely on that. */
#define NO_DRIVER "an entry of a driver that is not loaded"

API void *dlsym(void *library, const char *name);
API void *dlvsym(void *library, const char *name, const char *version);

static void *missing(void *library, const char *name) {
    (void)library, (void)name;
    return NULL;
}

static void *missing_version(void *library, const char *name, const char *version) {
    (void)library, (void)name, (void)version;
    return NULL;
}

/* The lookups themselves, by which a program would come past these ones. Without the C library's string functions, as
   everything that is called before those can be. */
static int is_lookup(const char *name) {
    int after = name[0] == 'd' && name[1] == 'l' ? 2 + (name[2] == 'v') : 0;
    return after && name[after] == 's' && name[after + 1] == 'y' && name[after + 2] == 'm' && name[after + 3] == '\0';
}

static void *stand_before_lookup(void *found) {
    if (found && found == (void *)(uintptr_t)real_dlsym())
        return (void *)(uintptr_t)&dlsym;
    if (found && found == (void *)(uintptr_t)real_dlvsym())
        return (void *)(uintptr_t)&dlvsym;
    return found;
}

void *dlsym(void *library, const char *name) {
    dlsym_t *look_up = real_dlsym();
    void *next;
    if (look_up == NULL)
        look_up = missing;
    if (is_lookup(name) && library != RTLD_NEXT)
        return stand_before_lookup(look_up(library, name));
    if (!is_of_driver(name))
        PASS_ON look_up(library, name);
    find_library_of(name);
    if (library == RTLD_NEXT && has_entry(name, &next) && next)
        return stand_before(next);
    if (library == RTLD_NEXT)
        PASS_ON look_up(library, name);
    void *found = look_up(library, name), *given = stand_before(found);
    return found && given == NULL ? look_up(library, NO_DRIVER) : given;
}

void *dlvsym(void *library, const char *name, const char *version) {
    dlvsym_t *look_up = real_dlvsym();
    void *next;
    if (look_up == NULL)
        look_up = missing_version;
    if (is_lookup(name) && library != RTLD_NEXT)
        return stand_before_lookup(look_up(library, name, version));
    if (!is_of_driver(name))
        PASS_ON look_up(library, name, version);
    find_library_of(name);
    if (library == RTLD_NEXT && has_entry(name, &next) && next)
        return stand_before(next);
    if (library == RTLD_NEXT)
        PASS_ON look_up(library, name, version);
    void *found = look_up(library, name, version), *given = stand_before(found);
    return found && given == NULL ? look_up(library, NO_DRIVER, version) : given;
}

CUresult cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags) {
    CUresult result = CALL(cuGetProcAddress, name, entry, version, flags);
    if (result == CUDA_SUCCESS && entry)
        *entry = stand_before(*entry);
    return result;
}

CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status) {
    CUresult result = CALL(cuGetProcAddress_v2, name, entry, version, flags, status);
    if (result == CUDA_SUCCESS && entry)
        *entry = stand_before(*entry);
    return result;
}

CUresult cuInit(unsigned int flags) {
    translate_visible_devices();
    mps_prepare();
    return CALL(cuInit, flags);
}
