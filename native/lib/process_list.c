/* Who uses the card, as NVML lists it: the processes of this container alone, by their numbers in it, with what the
   region says that they hold. Where nothing limits the card, NVML's own lists are what the program gets. */
#define _GNU_SOURCE
#include "memory.h"

#define NO_INSTANCE 0xFFFFFFFFu
#define COMPUTE_MODE 0

typedef nvmlReturn_t ask_t(nvmlDevice_t device, unsigned int *count, void *rows);
typedef void write_t(void *rows, int place, const holder_t *holder);

static void write_short(void *rows, int place, const holder_t *holder) {
    ((nvmlProcessInfo_v1_t *)rows)[place] = (nvmlProcessInfo_v1_t){holder->pid, holder->bytes};
}

static void write_long(void *rows, int place, const holder_t *holder) {
    ((nvmlProcessInfo_t *)rows)[place] = (nvmlProcessInfo_t){holder->pid, holder->bytes, NO_INSTANCE, NO_INSTANCE};
}

static void write_detail(void *rows, int place, const holder_t *holder) {
    ((nvmlProcessDetail_t *)rows)[place] =
        (nvmlProcessDetail_t){holder->pid, holder->bytes, NO_INSTANCE, NO_INSTANCE, 0};
}

/* Returns 0 where NVML's own list is what the program gets. */
static int is_ours_to_list(nvmlDevice_t device) {
    int card = card_of_handle(device);
    return card != NO_CARD && limit_of(card) != NO_LIMIT;
}

/* As NVML does it: with too little room it says how much there must be. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned int *count, void *rows, write_t *write) {
    holder_t holders[REGION_SLOTS];
    unsigned int room = *count;
    int card = card_of_handle(device);
    int beside = card != NO_CARD && spill_limit_of(card) ? card_of_spill(card) : NO_CARD;
    int found = region_holders(card, beside, holders, REGION_SLOTS);
    *count = (unsigned int)found;
    if (*count > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (int place = 0; rows && place < found; place++)
        write(rows, place, &holders[place]);
    return NVML_SUCCESS;
}

/* NVML goes first, without room: what it says against the question itself is what the program is told. */
static int is_answered(nvmlReturn_t result) {
    return result != NVML_SUCCESS && result != NVML_ERROR_INSUFFICIENT_SIZE;
}

#define PROCESS_LIST(name, row_t, answer)                                                                              \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, row_t *rows) {                                         \
        unsigned int none = 0;                                                                                         \
        if (load_nvml() || real.name == NULL)                                                                          \
            return NVML_ERROR_FUNCTION_NOT_FOUND;                                                                      \
        nvmlReturn_t result = count ? real.name(device, &none, NULL) : real.name(device, count, rows);                 \
        if (is_answered(result))                                                                                       \
            return result;                                                                                             \
        return is_ours_to_list(device) ? answer : real.name(device, count, rows);                                      \
    }

#define LISTED(write) list(device, count, rows, write)
#define NONE (*count = 0, NVML_SUCCESS)

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, LISTED(write_short))
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_t, LISTED(write_long))
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, LISTED(write_long))
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, NONE)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_t, NONE)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, NONE)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, NONE)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_t, NONE)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, NONE)

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *wish) {
    if (load_nvml() || real.nvmlDeviceGetRunningProcessDetailList == NULL)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    if (wish == NULL || !is_ours_to_list(device))
        return real.nvmlDeviceGetRunningProcessDetailList(device, wish);
    nvmlProcessDetailList_t bare = {wish->version, wish->mode, 0, NULL};
    nvmlReturn_t result = real.nvmlDeviceGetRunningProcessDetailList(device, &bare);
    if (is_answered(result))
        return result;
    if (wish->mode == COMPUTE_MODE)
        return list(device, &wish->count, wish->rows, write_detail);
    wish->count = 0;
    return NVML_SUCCESS;
}
