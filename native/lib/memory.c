/* Memory by address. Every request is charged before the driver sees it, and given back when the driver has taken it
   back or never gave it. What the library did not see allocated goes to the driver untouched. */
#define _GNU_SOURCE
#include "memory.h"

#include <pthread.h>
#include <string.h>

#define SMALL_GRAIN 512
#define LARGEST_SMALL ((uint64_t)1 << 20)
#define PITCH_GRAIN 512

/* Small blocks share pages, so what they take together is charged, page by page. */
static struct {
    pthread_mutex_t mutex;
    uint64_t bytes[MOST_CARDS];
} small = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void forget_small_blocks(void) {
    pthread_mutex_init(&small.mutex, NULL);
    memset(small.bytes, 0, sizeof small.bytes);
}

typedef int take_t(int card, uint64_t bytes);

static int take_pages(int card, uint64_t bytes) {
    uint64_t left;
    if (bytes == 0)
        return 0;
    if (region_reserve(card, bytes, limit_of(card), &left))
        return -1;
    upkeep_note_left(card, left);
    return 0;
}

/* As the driver would take it: a small block shares pages with others, a large one has its own. */
static int take_block(int card, uint64_t bytes) {
    if (bytes > LARGEST_SMALL)
        return take_pages(card, round_up(bytes, PAGE));
    pthread_mutex_lock(&small.mutex);
    uint64_t before = small.bytes[card], after = before + round_up(bytes, SMALL_GRAIN);
    int result = take_pages(card, round_up(after, PAGE) - round_up(before, PAGE));
    if (result == 0)
        small.bytes[card] = after;
    pthread_mutex_unlock(&small.mutex);
    return result;
}

/* Before a refusal what is not used is let go of, and it is looked again at what the driver takes for itself. */
static int take(take_t *how, int card, uint64_t bytes) {
    upkeep_keep_up(card, limit_of(card));
    if (how(card, bytes) == 0 || (trim_pools(card) && how(card, bytes) == 0))
        return 0;
    return upkeep_look_again(card) && how(card, bytes) == 0 ? 0 : -1;
}

int try_reserve_pages(int card, uint64_t bytes) {
    return take(take_pages, card, bytes);
}

CUresult reserve_pages(int card, uint64_t bytes) {
    return try_reserve_pages(card, bytes) == 0 ? CUDA_SUCCESS : refuse(card, bytes);
}

void give_back_block(int card, uint64_t bytes) {
    if (bytes > LARGEST_SMALL) {
        region_give_back(card, round_up(bytes, PAGE));
        return;
    }
    pthread_mutex_lock(&small.mutex);
    uint64_t before = small.bytes[card], after = before - round_up(bytes, SMALL_GRAIN);
    small.bytes[card] = after;
    region_give_back(card, round_up(before, PAGE) - round_up(after, PAGE));
    pthread_mutex_unlock(&small.mutex);
}

/* Nothing is refused yet: there may be room elsewhere. */
static CUresult try_charge(charge_t *charge, int card, uint64_t bytes) {
    *charge = (charge_t){.card = bytes ? card : NO_CARD, .bytes = bytes};
    adopt_context(charge->card);
    charge->is_refused = charge->card != NO_CARD && take(take_block, card, bytes);
    return charge->is_refused ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult begin_charge(charge_t *charge, int card, uint64_t bytes) {
    return try_charge(charge, card, bytes) == CUDA_SUCCESS ? CUDA_SUCCESS : refuse(card, bytes);
}

CUresult end_charge(const charge_t *charge, CUresult result, kind_t kind, uint64_t key) {
    CUcontext context = NULL;
    if (charge->card == NO_CARD)
        return result;
    if (result != CUDA_SUCCESS) {
        give_back_block(charge->card, charge->bytes);
        return result;
    }
    if (kind != HANDLE)
        real.cuCtxGetCurrent(&context);
    /* Where the process has no memory to remember it, it stays charged until the process ends. */
    blocks_put(block_of(key, charge->bytes, (uint64_t)(uintptr_t)context, charge->card, kind));
    return result;
}

CUresult end_free(int was_known, const block_t *block, CUresult result) {
    if (was_known && result == CUDA_SUCCESS) {
        if (block->is_exported)
            upkeep_expect_growth(block->card);
        give_back_block(block->card, block->bytes);
    } else if (was_known) {
        blocks_put(*block);
    }
    return result;
}

static CUresult end_pointer(const charge_t *charge, CUresult result, const CUdeviceptr *pointer) {
    return end_charge(charge, result, POINTER, result == CUDA_SUCCESS ? *pointer : 0);
}

/* Where the card has nothing left, for the tile or at all, the host's memory may do. */
static CUresult spill_if_full(charge_t *charge, CUresult result, CUdeviceptr *pointer) {
    if (result != CUDA_ERROR_OUT_OF_MEMORY || charge->card == NO_CARD)
        return result;
    charge->is_spilled = pointer && spill(pointer, charge->card, charge->bytes) == CUDA_SUCCESS;
    if (charge->is_spilled)
        return CUDA_SUCCESS;
    return charge->is_refused ? refuse(charge->card, charge->bytes) : result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    charge_t charge;
    CUresult result = try_charge(&charge, current_card(), bytes);
    if (result == CUDA_SUCCESS)
        result = end_pointer(&charge, CALL(cuMemAlloc_v2, pointer, bytes), pointer);
    return spill_if_full(&charge, result, pointer);
}

CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes) {
    charge_t charge;
    CUresult result = begin_charge(&charge, current_card(), bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = CALL(cuMemAlloc, pointer, bytes);
    return end_charge(&charge, result, POINTER, result == CUDA_SUCCESS ? *pointer : 0);
}

/* Charged in full, wherever its pages are just now. */
CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
    charge_t charge;
    CUresult result = try_charge(&charge, current_card(), bytes);
    if (charge.card != NO_CARD)
        upkeep_doubt(charge.card);
    if (result == CUDA_SUCCESS)
        result = end_pointer(&charge, CALL(cuMemAllocManaged, pointer, bytes, flags), pointer);
    return spill_if_full(&charge, result, pointer);
}

/* Rows are as long as the driver likes; on every card so far multiples of 512 bytes. */
static uint64_t pitched_bytes(uint64_t width, uint64_t height) {
    uint64_t row = round_up(width, PITCH_GRAIN);
    return height && row > UINT64_MAX / height ? UINT64_MAX : row * height;
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width, unsigned int height,
                         unsigned int element) {
    charge_t charge;
    CUresult result = begin_charge(&charge, current_card(), pitched_bytes(width, height));
    if (result != CUDA_SUCCESS)
        return result;
    result = CALL(cuMemAllocPitch, pointer, pitch, width, height, element);
    return end_charge(&charge, result, POINTER, result == CUDA_SUCCESS ? *pointer : 0);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned int element) {
    charge_t charge;
    CUresult result = try_charge(&charge, current_card(), pitched_bytes(width, height));
    if (result == CUDA_SUCCESS)
        result = end_pointer(&charge, CALL(cuMemAllocPitch_v2, pointer, pitch, width, height, element), pointer);
    result = spill_if_full(&charge, result, pointer);
    if (charge.is_spilled && pitch)
        *pitch = round_up(width, PITCH_GRAIN);
    return result;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
    block_t block;
    if (drop_spilled(pointer, &block))
        return free_spilled(&block);
    int was_known = blocks_drop(POINTER, pointer, &block);
    return end_free(was_known, &block, CALL(cuMemFree_v2, pointer));
}

CUresult cuMemFree(CUdeviceptr_v1 pointer) {
    block_t block;
    int was_known = blocks_drop(POINTER, pointer, &block);
    return end_free(was_known, &block, CALL(cuMemFree, pointer));
}
