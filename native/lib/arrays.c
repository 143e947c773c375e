/* Arrays: the driver does not say what they take, so it is reckoned from their format. Those that are backed by memory
   of cuMemCreate are charged there. */
#define _GNU_SOURCE
#include "memory.h"

#define ARRAY_GRAIN ((uint64_t)64 << 10)

/* Bytes of one channel. A format that is not known is taken for the largest. */
static uint64_t channel_bytes(int format) {
    switch (format) {
    case 0x01: /* unsigned, 8 bits */
    case 0x08: /* signed, 8 bits */
        return 1;
    case 0x02:
    case 0x09:
    case 0x10: /* half */
        return 2;
    default:
        return 4;
    }
}

static uint64_t at_least_one(uint64_t value) {
    return value ? value : 1;
}

static uint64_t product(uint64_t one, uint64_t other) {
    return other && one > UINT64_MAX / other ? UINT64_MAX : one * other;
}

static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *wish) {
    if (wish->flags & (ARRAY_SPARSE | ARRAY_DEFERRED))
        return 0;
    uint64_t texel = product(channel_bytes(wish->format), at_least_one(wish->channels));
    uint64_t row = product(at_least_one(wish->width), texel);
    uint64_t layer = product(row, at_least_one(wish->height));
    return round_up(product(layer, at_least_one(wish->depth)), ARRAY_GRAIN);
}

static uint64_t bytes_of_levels(const CUDA_ARRAY3D_DESCRIPTOR *wish, unsigned int levels) {
    CUDA_ARRAY3D_DESCRIPTOR level = wish ? *wish : (CUDA_ARRAY3D_DESCRIPTOR){.flags = ARRAY_SPARSE};
    uint64_t sum = 0;
    for (unsigned int one = 0; one < levels; one++) {
        uint64_t bytes = bytes_of(&level);
        sum = sum > UINT64_MAX - bytes ? UINT64_MAX : sum + bytes;
        if (level.width <= 1 && level.height <= 1 && (level.depth <= 1 || level.flags & ARRAY_LAYERED))
            break;
        level.width = at_least_one(level.width / 2);
        level.height = level.height ? at_least_one(level.height / 2) : 0;
        if (level.depth && !(level.flags & ARRAY_LAYERED))
            level.depth = at_least_one(level.depth / 2);
    }
    return sum;
}

static uint64_t key_of(CUresult result, void *const *handle) {
    return result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*handle : 0;
}

/* The bytes of an array of two dimensions, or of three; the first versions of these entries have narrower wishes. */
#define FLAT_BYTES(wish)                                                                                               \
    (wish ? bytes_of(&(CUDA_ARRAY3D_DESCRIPTOR){wish->width, wish->height, 0, wish->format, wish->channels, 0}) : 0)
#define DEEP_BYTES(wish)                                                                                               \
    (wish ? bytes_of(&(CUDA_ARRAY3D_DESCRIPTOR){wish->width, wish->height, wish->depth, wish->format, wish->channels,  \
                                                wish->flags})                                                          \
          : 0)

#define MAKE(name, parameters, bytes, ...)                                                                             \
    CUresult name parameters {                                                                                         \
        charge_t charge;                                                                                               \
        CUresult result = begin_charge(&charge, current_card(), bytes);                                                \
        if (result != CUDA_SUCCESS)                                                                                    \
            return result;                                                                                             \
        result = CALL(name, __VA_ARGS__);                                                                              \
        return end_charge(&charge, result, ARRAY, key_of(result, (void **)array));                                     \
    }

MAKE(cuArrayCreate, (CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *wish), FLAT_BYTES(wish), array, wish)
MAKE(cuArrayCreate_v2, (CUarray *array, const CUDA_ARRAY_DESCRIPTOR *wish), FLAT_BYTES(wish), array, wish)
MAKE(cuArray3DCreate, (CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *wish), DEEP_BYTES(wish), array, wish)
MAKE(cuArray3DCreate_v2, (CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *wish), DEEP_BYTES(wish), array, wish)
MAKE(cuMipmappedArrayCreate, (CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *wish, unsigned int levels),
     bytes_of_levels(wish, levels), array, wish, levels)

CUresult cuArrayDestroy(CUarray array) {
    block_t block;
    int was_known = blocks_drop(ARRAY, (uint64_t)(uintptr_t)array, &block);
    return end_free(was_known, &block, CALL(cuArrayDestroy, array));
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
    block_t block;
    int was_known = blocks_drop(ARRAY, (uint64_t)(uintptr_t)array, &block);
    return end_free(was_known, &block, CALL(cuMipmappedArrayDestroy, array));
}
