/* Memory by address, by handle and in arrays: what it takes, and what is refused. */
#define _GNU_SOURCE
#include "calibrate.h"

#include <stdlib.h>
#include <unistd.h>

#define MEMORY_TYPE 2
#define DEVICE_ORDINAL 9
#define PINNED 1
#define ON_DEVICE 1
#define POSIX_FILE 1
#define MINIMUM 0
#define RECOMMENDED 1
#define UNSIGNED_8 1

static void say_alloc(const char *name, size_t bytes) {
    pointer_t pointer = 0;
    size_t before = free_bytes();
    int code = cuda.cuMemAlloc_v2(&pointer, bytes);
    SAY(name, "%d, takes %.0f MiB", code, taken_mib(before));
    if (code == 0)
        MUST(cuda.cuMemFree_v2(pointer));
}

static void say_allocs(void) {
    pointer_t kept, other;
    say_alloc("alloc of 1 byte", 1);
    say_alloc("alloc of 1 MiB", MIB);
    say_alloc("alloc of 1 MiB and 1 byte", MIB + 1);
    say_alloc("alloc of 3 MiB", 3 * MIB);
    say_alloc("alloc of 0 bytes", 0);
    say_alloc("alloc of more than the card has", (size_t)1 << 42);
    MUST(cuda.cuMemAlloc_v2(&kept, 1));
    size_t before = free_bytes();
    MUST(cuda.cuMemAlloc_v2(&other, 1));
    SAY("second alloc of 1 byte", "takes %.0f MiB", taken_mib(before));
    MUST(cuda.cuMemFree_v2(other));
    SAY_CODE("free of nothing", cuda.cuMemFree_v2(0));
    SAY_CODE("free of the middle of a block", cuda.cuMemFree_v2(kept + 256));
    SAY_CODE("free", cuda.cuMemFree_v2(kept));
    SAY_CODE("free again", cuda.cuMemFree_v2(kept));
}

static void say_pitch(const char *name, size_t width, unsigned int grain) {
    pointer_t pointer = 0;
    size_t pitch = 0;
    int code = cuda.cuMemAllocPitch_v2(&pointer, &pitch, width, 4, grain);
    SAY(name, "%d, pitch %zu", code, code == 0 ? pitch : 0);
    if (code == 0)
        MUST(cuda.cuMemFree_v2(pointer));
}

static void say_array(const char *name, size_t width, size_t height) {
    void *array;
    size_t before = free_bytes();
    int code = cuda.cuArrayCreate_v2(&array, &(array_t){width, height, UNSIGNED_8, 4});
    SAY(name, "%d, takes %.1f MiB", code, taken_mib(before));
    if (code == 0)
        MUST(cuda.cuArrayDestroy(array));
}

static void say_handles(void) {
    memory_wish_t wish = {PINNED, POSIX_FILE, ON_DEVICE, 0, {0}};
    pointer_t handle, imported, address;
    size_t grain = 0;
    int file = -1;
    MUST(cuda.cuMemGetAllocationGranularity(&grain, &wish, MINIMUM));
    SAY("smallest memory by handle", "%zu KiB", grain >> 10);
    MUST(cuda.cuMemGetAllocationGranularity(&grain, &wish, RECOMMENDED));
    SAY("recommended memory by handle", "%zu KiB", grain >> 10);
    SAY_CODE("memory by handle of 1 MiB", cuda.cuMemCreate(&handle, MIB, &wish, 0));
    size_t before = free_bytes();
    SAY_CODE("memory by handle of 4 MiB", cuda.cuMemCreate(&handle, 4 * MIB, &wish, 0));
    SAY("memory by handle of 4 MiB", "takes %.0f MiB", taken_mib(before));
    SAY_CODE("export", cuda.cuMemExportToShareableHandle(&file, handle, POSIX_FILE, 0));
    SAY_CODE("import of one's own", cuda.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file, POSIX_FILE));
    SAY("import", "takes %.0f MiB more", taken_mib(before) - 4);
    MUST(cuda.cuMemAddressReserve(&address, 4 * MIB, 0, 0, 0));
    SAY_CODE("map", cuda.cuMemMap(address, 4 * MIB, 0, handle, 0));
    SAY_CODE("map beyond the end", cuda.cuMemMap(address, 4 * MIB, 2 * MIB, handle, 0));
    MUST(cuda.cuMemRelease(handle));
    MUST(cuda.cuMemRelease(imported));
    SAY("memory by handle that is only mapped", "takes %.0f MiB", taken_mib(before));
    SAY_CODE("unmap", cuda.cuMemUnmap(address, 4 * MIB));
    SAY("memory by handle after its file is left", "takes %.0f MiB", taken_mib(before));
    close(file);
    SAY("memory by handle of which nothing is left", "takes %.0f MiB", taken_mib(before));
}

static void say_attribute(const char *name, int attribute, pointer_t pointer) {
    unsigned int value = 99;
    int code = cuda.cuPointerGetAttribute(&value, attribute, pointer);
    SAY(name, "%d, %d", code, code == 0 ? (int)value : -1);
}

static void say_pointers(void) {
    pointer_t pointer, mapped = 0;
    void *host, *other = malloc(4096);
    ipc_t ipc;
    MUST(cuda.cuMemAlloc_v2(&pointer, 2 * MIB));
    MUST(cuda.cuMemHostAlloc(&host, 4096, 0));
    say_attribute("type of device memory", MEMORY_TYPE, pointer + 5);
    say_attribute("device of device memory", DEVICE_ORDINAL, pointer);
    say_attribute("type of host memory", MEMORY_TYPE, (uintptr_t)host);
    say_attribute("type of other memory", MEMORY_TYPE, (uintptr_t)other);
    SAY_CODE("device pointer of host memory", cuda.cuMemHostGetDevicePointer_v2(&mapped, host, 0));
    SAY("device pointer of host memory is its own", "%s", mapped == (uintptr_t)host ? "yes" : "no");
    SAY_CODE("device pointer of other memory", cuda.cuMemHostGetDevicePointer_v2(&mapped, other, 0));
    SAY_CODE("free of other memory as host memory", cuda.cuMemFreeHost(other));
    SAY_CODE("unregister of what is not registered", cuda.cuMemHostUnregister(other));
    SAY_CODE("register", cuda.cuMemHostRegister_v2(other, 4096, 0));
    SAY_CODE("register again", cuda.cuMemHostRegister_v2(other, 4096, 0));
    SAY_CODE("unregister", cuda.cuMemHostUnregister(other));
    SAY_CODE("handle for other processes", cuda.cuIpcGetMemHandle(&ipc, pointer));
    SAY_CODE("handle of one's own opened", cuda.cuIpcOpenMemHandle_v2(&mapped, ipc, 1));
    MUST(cuda.cuMemFree_v2(pointer));
    MUST(cuda.cuMemFreeHost(host));
    free(other);
}

static void say_copies(void) {
    char in[64] = "tessera", out[64] = "";
    unsigned int words[4] = {0};
    pointer_t one, other;
    MUST(cuda.cuMemAlloc_v2(&one, 64));
    MUST(cuda.cuMemAlloc_v2(&other, 64));
    SAY_CODE("copy in", cuda.cuMemcpyHtoD_v2(one, in, sizeof in));
    SAY_CODE("copy within", cuda.cuMemcpyDtoD_v2(other, one, sizeof in));
    SAY_CODE("copy out", cuda.cuMemcpyDtoH_v2(out, other, sizeof out));
    SAY("what came out", "%s", out);
    SAY_CODE("copy of nothing", cuda.cuMemcpyHtoD_v2(one, in, 0));
    SAY_CODE("fill by words", cuda.cuMemsetD32_v2(one, 0x01020304, 4));
    SAY_CODE("fill by words at an odd address", cuda.cuMemsetD32_v2(one + 2, 0, 1));
    SAY_CODE("fill by bytes", cuda.cuMemsetD8_v2(one + 4, 7, 4));
    MUST(cuda.cuMemcpyDtoH_v2(words, one, sizeof words));
    SAY("what was filled", "%08x %08x %08x", words[0], words[1], words[2]);
    MUST(cuda.cuMemFree_v2(one));
    MUST(cuda.cuMemFree_v2(other));
}

void calibrate_memory(int number) {
    (void)number;
    say_allocs();
    say_pitch("pitch of 100 bytes", 100, 4);
    say_pitch("pitch of 513 bytes", 513, 4);
    say_pitch("pitch for elements of 3 bytes", 100, 3);
    say_array("array of one", 1, 0);
    say_array("array of 256 by 256", 256, 256);
    say_array("array of 1024 by 1024", 1024, 1024);
    say_array("array of 0", 0, 0);
    say_handles();
    say_pointers();
    say_copies();
}
