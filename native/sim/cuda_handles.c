/* Memory by handle, and addresses to map it to. It is taken when it is created and given back when neither a handle nor
   a mapping of it is left. */
#define _GNU_SOURCE
#include "cuda.h"

#include <stdlib.h>
#include <sys/mman.h>

#define ON_DEVICE 1

typedef struct {
    const card_t *card;
    uint64_t bytes;
    int uses;
} memory_t;

typedef struct mapping {
    CUdeviceptr begin;
    size_t bytes;
    memory_t *memory;
    struct mapping *next;
} mapping_t;

typedef struct {
    int type, handle_types;
    struct {
        int type, id;
    } location;
} CUmemAllocationProp;

static mapping_t *mappings;     /* guarded by the driver's lock */

static void drop(memory_t *memory) {
    if (--memory->uses > 0)
        return;
    machine_give_back(memory->card, memory->bytes);
    free(memory);
}

API CUresult cuMemGetAllocationGranularity(size_t *grain, const CUmemAllocationProp *wish, int option) {
    (void)wish, (void)option;
    *grain = PAGE;
    return SUCCESS;
}

API CUresult cuMemCreate(uint64_t *handle, size_t bytes, const CUmemAllocationProp *wish, unsigned long long flags) {
    const card_t *card;
    if (handle == NULL || wish == NULL || bytes == 0 || bytes % PAGE || flags || wish->location.type != ON_DEVICE)
        return INVALID_VALUE;
    CUresult result = find_card(wish->location.id, &card);
    if (result != SUCCESS)
        return result;
    memory_t *memory = malloc(sizeof *memory);
    if (memory == NULL || machine_take(card, bytes)) {
        free(memory);
        return OUT_OF_MEMORY;
    }
    *memory = (memory_t){card, bytes, 1};
    *handle = (uint64_t)(uintptr_t)memory;
    return SUCCESS;
}

API CUresult cuMemRelease(uint64_t handle) {
    if (handle == 0)
        return INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    drop((memory_t *)(uintptr_t)handle);
    pthread_mutex_unlock(&driver.mutex);
    return SUCCESS;
}

API CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t grain, CUdeviceptr wish,
                                 unsigned long long flags) {
    (void)grain, (void)wish, (void)flags;
    void *space = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        return OUT_OF_MEMORY;
    *address = (CUdeviceptr)(uintptr_t)space;
    return SUCCESS;
}

API CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    return munmap((void *)(uintptr_t)address, bytes) ? INVALID_VALUE : SUCCESS;
}

API CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags) {
    memory_t *memory = (memory_t *)(uintptr_t)handle;
    if (memory == NULL || flags || offset + bytes > memory->bytes)
        return INVALID_VALUE;
    mapping_t *mapping = malloc(sizeof *mapping);
    if (mapping == NULL)
        return OUT_OF_MEMORY;
    pthread_mutex_lock(&driver.mutex);
    memory->uses++;
    *mapping = (mapping_t){address, bytes, memory, mappings};
    mappings = mapping;
    pthread_mutex_unlock(&driver.mutex);
    return SUCCESS;
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
        drop(mapping->memory);
        free(mapping);
        result = SUCCESS;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}

API CUresult cuMemRetainAllocationHandle(uint64_t *handle, void *address) {
    CUdeviceptr wanted = (CUdeviceptr)(uintptr_t)address;
    CUresult result = INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    for (mapping_t *mapping = mappings; mapping && result != SUCCESS; mapping = mapping->next) {
        if (wanted < mapping->begin || wanted >= mapping->begin + mapping->bytes)
            continue;
        mapping->memory->uses++;
        *handle = (uint64_t)(uintptr_t)mapping->memory;
        result = SUCCESS;
    }
    pthread_mutex_unlock(&driver.mutex);
    return result;
}
