/* Memory by handle, and addresses to map it to. It is taken when it is created and given back when neither a handle nor
   a mapping of it is left. Memory that may be shared has a file behind it; whoever imports it is charged nothing. */
#define _GNU_SOURCE
#include "cuda_blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ON_DEVICE 1
#define PINNED 1
#define POSIX_FILE 1
#define READ 1
#define READ_WRITE 3

typedef struct {
    const card_t *card;
    CUdevice device;
    uint64_t bytes;
    int file;                   /* -1 where it cannot be shared */
    int is_imported;
    int handles, uses;          /* handles that were not released; and those and mappings */
} memory_t;

typedef struct mapping {
    CUdeviceptr begin;
    size_t bytes;
    memory_t *memory;
    struct mapping *next;
} mapping_t;

typedef struct {
    int type, id;
} CUmemLocation;

typedef struct {
    int type, handle_types;
    CUmemLocation location;
} CUmemAllocationProp;

typedef struct {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;

static mapping_t *mappings;     /* guarded by the driver's lock */

static void *address_of(CUdeviceptr pointer) {
    return (void *)(uintptr_t)pointer;
}

/* ---- handles -------------------------------------------------------------------------------------------------- */

/* With the driver locked. */
static void drop(memory_t *memory) {
    if (--memory->uses > 0)
        return;
    if (!memory->is_imported)
        machine_give_back(memory->card, memory->bytes);
    if (memory->file != -1)
        close(memory->file);
    free(memory);
}

static CUresult check_wish(const CUmemAllocationProp *wish) {
    if (wish == NULL || wish->type != PINNED || wish->location.type != ON_DEVICE)
        return INVALID_VALUE;
    const card_t *card;
    return find_card(wish->location.id, &card);
}

API CUresult cuMemGetAllocationGranularity(size_t *grain, const CUmemAllocationProp *wish, int option) {
    (void)option;
    CUresult result = grain ? check_wish(wish) : INVALID_VALUE;
    if (result == SUCCESS)
        *grain = PAGE;
    return result;
}

API CUresult cuMemCreate(uint64_t *handle, size_t bytes, const CUmemAllocationProp *wish, unsigned long long flags) {
    CUresult result = handle && bytes && bytes % PAGE == 0 && flags == 0 ? check_wish(wish) : INVALID_VALUE;
    if (result != SUCCESS)
        return result;
    const card_t *card = driver.cards[wish->location.id];
    memory_t *memory = malloc(sizeof *memory);
    int file = memory && wish->handle_types & POSIX_FILE ? make_memory_file(card->uuid, bytes) : -1;
    if (memory == NULL || machine_take(card, bytes)) {
        if (file != -1)
            close(file);
        free(memory);
        return OUT_OF_MEMORY;
    }
    *memory = (memory_t){card, wish->location.id, bytes, file, 0, 1, 1};
    *handle = (uintptr_t)memory;
    return SUCCESS;
}

API CUresult cuMemRelease(uint64_t handle) {
    memory_t *memory = (memory_t *)(uintptr_t)handle;
    if (memory == NULL)
        return INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    int is_there = memory->handles > 0;
    memory->handles -= is_there;
    if (is_there)
        drop(memory);
    pthread_mutex_unlock(&driver.mutex);
    return is_there ? SUCCESS : INVALID_VALUE;
}

API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *found, uint64_t handle) {
    const memory_t *memory = (const memory_t *)(uintptr_t)handle;
    if (found == NULL || memory == NULL)
        return INVALID_VALUE;
    *found = (CUmemAllocationProp){PINNED, memory->file == -1 ? 0 : POSIX_FILE, {ON_DEVICE, memory->device}};
    return SUCCESS;
}

/* ---- from one process to another ------------------------------------------------------------------------------ */

/* What is exported is a file that can be polled, as the driver's are, and not the memory itself: the end of a connection
   that has the memory's file lying in it, for whoever looks. */
typedef union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
} parcel_t;

static struct msghdr letter_with(parcel_t *parcel, struct iovec *text) {
    static char byte;
    *text = (struct iovec){&byte, 1};
    return (struct msghdr){.msg_iov = text, .msg_iovlen = 1, .msg_control = parcel, .msg_controllen = sizeof *parcel};
}

static int wrap(int file) {
    int ends[2];
    parcel_t parcel = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec text;
    struct msghdr letter = letter_with(&parcel, &text);
    memcpy(CMSG_DATA(&parcel.header), &file, sizeof file);
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends))
        return -1;
    ssize_t sent = sendmsg(ends[1], &letter, 0);
    close(ends[1]);
    if (sent == 1)
        return ends[0];
    close(ends[0]);
    return -1;
}

/* A descriptor of the memory's file, or -1. What is wrapped stays so. */
static int unwrap(int wrapped) {
    parcel_t parcel = {0};
    struct iovec text;
    struct msghdr letter = letter_with(&parcel, &text);
    int file = -1;
    if (recvmsg(wrapped, &letter, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&letter))
        memcpy(&file, CMSG_DATA(&parcel.header), sizeof file);
    return file;
}

API CUresult cuMemExportToShareableHandle(void *shareable, uint64_t handle, int type, unsigned long long flags) {
    const memory_t *memory = (const memory_t *)(uintptr_t)handle;
    if (shareable == NULL || memory == NULL || type != POSIX_FILE || flags || memory->file == -1)
        return INVALID_VALUE;
    int file = wrap(memory->file);
    *(int *)shareable = file;
    return file == -1 ? OUT_OF_MEMORY : SUCCESS;
}

/* The file's name is the card's UUID. */
static CUdevice device_of_file(int file) {
    char path[64], name[128];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    ssize_t length = readlink(path, name, sizeof name - 1);
    name[length > 0 ? length : 0] = '\0';
    for (CUdevice device = 0; device < driver.count; device++)
        if (strstr(name, driver.cards[device]->uuid))
            return device;
    return -1;
}

API CUresult cuMemImportFromShareableHandle(uint64_t *handle, void *shareable, int type) {
    struct stat about;
    int file = type == POSIX_FILE ? unwrap((int)(intptr_t)shareable) : -1;
    if (handle == NULL || file == -1 || fstat(file, &about))
        return INVALID_VALUE;
    CUdevice device = device_of_file(file);
    memory_t *memory = malloc(sizeof *memory);
    if (device == -1 || memory == NULL) {
        free(memory);
        close(file);
        return memory ? INVALID_VALUE : OUT_OF_MEMORY;
    }
    *memory = (memory_t){driver.cards[device], device, (uint64_t)about.st_size, file, 1, 1, 1};
    *handle = (uintptr_t)memory;
    return SUCCESS;
}

/* ---- addresses ------------------------------------------------------------------------------------------------ */

API CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t grain, CUdeviceptr wish,
                                 unsigned long long flags) {
    (void)grain, (void)wish;
    if (address == NULL || bytes == 0 || bytes % PAGE || flags)
        return INVALID_VALUE;
    void *space = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        return OUT_OF_MEMORY;
    *address = (uintptr_t)space;
    return SUCCESS;
}

API CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    return munmap(address_of(address), bytes) ? INVALID_VALUE : SUCCESS;
}

int is_mapped(CUdeviceptr pointer, size_t bytes) {
    int is_found = 0;
    pthread_mutex_lock(&driver.mutex);
    for (mapping_t *mapping = mappings; mapping && !is_found; mapping = mapping->next)
        is_found = pointer >= mapping->begin && pointer + bytes <= mapping->begin + mapping->bytes;
    pthread_mutex_unlock(&driver.mutex);
    return is_found;
}

API CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags) {
    memory_t *memory = (memory_t *)(uintptr_t)handle;
    if (offset)                 /* a driver would have it, and has not come to it */
        return NOT_SUPPORTED;
    if (memory == NULL || flags || bytes == 0 || bytes > memory->bytes)
        return INVALID_VALUE;
    mapping_t *mapping = malloc(sizeof *mapping);
    if (mapping == NULL)
        return OUT_OF_MEMORY;
    if (memory->file != -1)
        mmap(address_of(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->file, 0);
    pthread_mutex_lock(&driver.mutex);
    memory->uses++;
    *mapping = (mapping_t){address, bytes, memory, mappings};
    mappings = mapping;
    pthread_mutex_unlock(&driver.mutex);
    return SUCCESS;
}

/* Nothing can be read or written before it was allowed. */
API CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *wish, size_t count) {
    if (wish == NULL || count == 0 || !is_mapped(address, 1))
        return INVALID_VALUE;
    int protection = wish->flags == READ_WRITE ? PROT_READ | PROT_WRITE : wish->flags == READ ? PROT_READ : PROT_NONE;
    return mprotect(address_of(address), bytes, protection) ? INVALID_VALUE : SUCCESS;
}

API CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    CUresult result = INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    for (mapping_t **link = &mappings; *link != NULL;) {
        mapping_t *mapping = *link;
        if (mapping->begin < address || mapping->begin >= address + bytes) {
            link = &mapping->next;
            continue;
        }
        *link = mapping->next;
        mmap(address_of(mapping->begin), mapping->bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        drop(mapping->memory);
        free(mapping);
        result = SUCCESS;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

API CUresult cuMemRetainAllocationHandle(uint64_t *handle, void *address) {
    CUdeviceptr wanted = (uintptr_t)address;
    CUresult result = INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    for (mapping_t *mapping = mappings; mapping && result != SUCCESS; mapping = mapping->next) {
        if (wanted < mapping->begin || wanted >= mapping->begin + mapping->bytes)
            continue;
        mapping->memory->handles++;
        mapping->memory->uses++;
        *handle = (uintptr_t)mapping->memory;
        result = SUCCESS;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}
