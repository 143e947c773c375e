/* Arrays: memory whose layout is the card's own. Only what they take is simulated. */
#define _GNU_SOURCE
#include "cuda_blocks.h"

#define ARRAY_GRAIN ((uint64_t)64 << 10)
#define WITHOUT_MEMORY (0x40 | 0x80)    /* sparse, or mapped later */
#define LAYERED 0x01

typedef struct {
    size_t width, height;
    int format;
    unsigned int channels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    size_t width, height, depth;
    int format;
    unsigned int channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;

/* Of the first versions, which are only exported. */
typedef struct {
    unsigned int width, height;
    int format;
    unsigned int channels;
} CUDA_ARRAY_DESCRIPTOR_v1;

typedef struct {
    unsigned int width, height, depth;
    int format;
    unsigned int channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

/* Formats are numbered by kind (unsigned, signed at 8, floats at 16 and 32) and then by size. */
static size_t texel_bytes(int format, unsigned int channels) {
    size_t bytes = format == 0x20 ? 4 : format == 0x10 ? 2 : (size_t)1 << ((format & 7) - (format < 8));
    return bytes * channels;
}

static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *wish, size_t shrink) {
    size_t width = wish->width >> shrink, height = wish->height >> shrink;
    size_t depth = wish->depth >> (wish->flags & LAYERED ? 0 : shrink);
    uint64_t texels = (uint64_t)(width ? width : 1) * (height ? height : 1) * (depth ? depth : 1);
    return round_up(texels * texel_bytes(wish->format, wish->channels), ARRAY_GRAIN);
}

static CUresult make_array(CUdeviceptr *array, const CUDA_ARRAY3D_DESCRIPTOR *wish, unsigned int levels) {
    uint64_t bytes = 0;
    if (wish == NULL || wish->width == 0 || wish->channels == 0)
        return INVALID_VALUE;
    for (unsigned int level = 0; level < levels; level++)
        bytes += wish->flags & WITHOUT_MEMORY ? 0 : bytes_of(wish, level);
    return make_block(array, bytes ? bytes : 1, NULL);
}

API CUresult cuArrayCreate_v2(CUdeviceptr *array, const CUDA_ARRAY_DESCRIPTOR *wish) {
    if (wish == NULL)
        return INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR flat = {wish->width, wish->height, 0, wish->format, wish->channels, 0};
    return make_array(array, &flat, 1);
}

API CUresult cuArrayCreate(CUdeviceptr *array, const CUDA_ARRAY_DESCRIPTOR_v1 *wish) {
    if (wish == NULL)
        return INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR flat = {wish->width, wish->height, 0, wish->format, wish->channels, 0};
    return make_array(array, &flat, 1);
}

API CUresult cuArray3DCreate(CUdeviceptr *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *wish) {
    if (wish == NULL)
        return INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR deep = {wish->width, wish->height, wish->depth, wish->format, wish->channels, wish->flags};
    return make_array(array, &deep, 1);
}

API CUresult cuArray3DCreate_v2(CUdeviceptr *array, const CUDA_ARRAY3D_DESCRIPTOR *wish) {
    return make_array(array, wish, 1);
}

API CUresult cuMipmappedArrayCreate(CUdeviceptr *array, const CUDA_ARRAY3D_DESCRIPTOR *wish, unsigned int levels) {
    return make_array(array, wish, levels);
}

API CUresult cuArrayDestroy(CUdeviceptr array) {
    return free_block_at(array);
}

API CUresult cuMipmappedArrayDestroy(CUdeviceptr array) {
    return free_block_at(array);
}
