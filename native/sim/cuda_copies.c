/* Copies and fills. Between host and card they are on engines of their own; within a card they are work of the card. */
#define _GNU_SOURCE
#include "../copy_types.h"
#include "cuda_blocks.h"
#include "cuda_graphs.h"

#define DEFAULT_ENTRY(name, parameters, action) STREAM_ENTRY_AS(name, name##_ptds, parameters, NULL, action)

static void *address_of(CUdeviceptr pointer) {
    return (void *)(uintptr_t)pointer;
}

/* From the first byte to the last one. */
static size_t span(const op_t *op, size_t line, size_t plane) {
    return (op->copy.layout.planes - 1) * plane + (op->copy.layout.lines - 1) * line + op->copy.bytes;
}

static CUresult check_copy(const op_t *op) {
    const layout_t *layout = &op->copy.layout;
    CUdeviceptr to = (uintptr_t)op->copy.to, from = (uintptr_t)op->copy.from;
    int is_wrong = op->copy.engine != FROM_CARD && !is_device_memory(to, span(op, layout->to.line, layout->to.plane));
    is_wrong |= op->copy.engine != TO_CARD && !is_device_memory(from, span(op, layout->from.line, layout->from.plane));
    return is_wrong || to == 0 || from == 0 ? INVALID_VALUE : SUCCESS;
}

/* Only copies of pinned memory go on while the program does; others are done when the call returns. */
static int is_pageable(const op_t *op) {
    if (op->copy.engine == ON_CARD)
        return 0;
    return !is_host_memory(op->copy.engine == TO_CARD ? op->copy.from : op->copy.to);
}

static CUresult copy_op(stream_t *stream, op_t op, int is_async) {
    if (op.copy.bytes * op.copy.layout.lines * op.copy.layout.planes == 0)
        return SUCCESS;
    CUresult result = check_copy(&op);
    if (result == SUCCESS && !is_async)
        result = check_unsafe_on(stream);
    if (result != SUCCESS)
        return result;
    if (stream->capture || (is_async && !is_pageable(&op)))
        return queue_push(stream, op);
    return queue_run(stream, op);
}

static CUresult copy(stream_t *stream, void *to, const void *from, size_t bytes, engine_t engine, int is_async) {
    layout_t one_line = {.lines = 1, .planes = 1};
    return copy_op(stream, (op_t){.kind = COPY, .copy = {to, from, bytes, engine, one_line}}, is_async);
}

/* Where both may be anywhere. */
static engine_t engine_between(CUdeviceptr to, CUdeviceptr from) {
    if (is_device_memory(from, 1))
        return is_device_memory(to, 1) ? ON_CARD : FROM_CARD;
    return TO_CARD;
}

DEFAULT_ENTRY(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes),
              copy(on, address_of(to), from, bytes, TO_CARD, 0))
DEFAULT_ENTRY(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes),
              copy(on, to, address_of(from), bytes, FROM_CARD, 0))
DEFAULT_ENTRY(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
              copy(on, address_of(to), address_of(from), bytes, ON_CARD, 0))
DEFAULT_ENTRY(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
              copy(on, address_of(to), address_of(from), bytes, engine_between(to, from), 0))

STREAM_ENTRY(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
             copy(on, address_of(to), from, bytes, TO_CARD, 1))
STREAM_ENTRY(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
             copy(on, to, address_of(from), bytes, FROM_CARD, 1))
STREAM_ENTRY(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
             copy(on, address_of(to), address_of(from), bytes, ON_CARD, 1))
STREAM_ENTRY(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
             copy(on, address_of(to), address_of(from), bytes, engine_between(to, from), 1))

static CUresult copy_batch(stream_t *stream, const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes,
                           size_t count) {
    CUresult result = to && from && bytes && count ? SUCCESS : INVALID_VALUE;
    for (size_t one = 0; one < count && result == SUCCESS; one++)
        result = copy(stream, address_of(to[one]), address_of(from[one]), bytes[one],
                      engine_between(to[one], from[one]), 1);
    return result;
}

STREAM_ENTRY(cuMemcpyBatchAsync, (CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count, void *manners,
                                  size_t *firsts, size_t manner_count, size_t *failed, CUstream stream),
             ((void)manners, (void)firsts, (void)manner_count, (void)failed, copy_batch(on, to, from, bytes, count)))
STREAM_ENTRY(cuMemcpyBatchAsync_v2, (CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count, void *manners,
                                     size_t *firsts, size_t manner_count, CUstream stream),
             ((void)manners, (void)firsts, (void)manner_count, copy_batch(on, to, from, bytes, count)))

/* ---- planes and boxes; the contents of arrays are not simulated --------------------------------------------------- */

static CUdeviceptr box_begin(const copy_box_t *end) {
    CUdeviceptr base = end->memory == MEMORY_OF_HOST ? (CUdeviceptr)(uintptr_t)end->host : end->device;
    return base + (end->z * end->height + end->y) * end->pitch + end->x;
}

static CUresult copy_box(stream_t *stream, const CUDA_MEMCPY3D *wish, int is_async) {
    if (wish == NULL || wish->from.memory == MEMORY_IN_ARRAY || wish->to.memory == MEMORY_IN_ARRAY)
        return INVALID_VALUE;
    if (wish->from.pitch < wish->width || wish->to.pitch < wish->width)
        return INVALID_VALUE;
    CUdeviceptr to = box_begin(&wish->to), from = box_begin(&wish->from);
    op_t op = {.kind = COPY, .copy = {address_of(to), address_of(from), wish->width, engine_between(to, from),
                                      {wish->height, wish->depth,
                                       {wish->to.pitch, wish->to.pitch * wish->to.height},
                                       {wish->from.pitch, wish->from.pitch * wish->from.height}}}};
    return copy_op(stream, op, is_async);
}

static copy_box_t plane_as_box(const copy_plane_t *end) {
    return (copy_box_t){.x = end->x, .y = end->y, .memory = end->memory, .host = end->host, .device = end->device,
                        .array = end->array, .pitch = end->pitch};
}

static CUresult copy_plane(stream_t *stream, const CUDA_MEMCPY2D *wish, int is_async) {
    if (wish == NULL)
        return INVALID_VALUE;
    CUDA_MEMCPY3D box = {plane_as_box(&wish->from), plane_as_box(&wish->to), wish->width, wish->height, 1};
    return copy_box(stream, &box, is_async);
}

DEFAULT_ENTRY(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *wish), copy_plane(on, wish, 0))
DEFAULT_ENTRY(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *wish), copy_plane(on, wish, 0))
DEFAULT_ENTRY(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *wish), copy_box(on, wish, 0))
STREAM_ENTRY(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *wish, CUstream stream), copy_plane(on, wish, 1))
STREAM_ENTRY(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *wish, CUstream stream), copy_box(on, wish, 1))

/* ---- fills ---------------------------------------------------------------------------------------------------- */

static CUresult fill(stream_t *stream, CUdeviceptr to, uint32_t value, unsigned int width, size_t count) {
    op_t op = {.kind = FILL, .fill = {address_of(to), value, width, count * width}};
    if (to % width || !is_device_memory(to, count * width))
        return INVALID_VALUE;
    return queue_push(stream, op);
}

#define FILL_ENTRIES(now, later, type)                                                                                 \
    DEFAULT_ENTRY(now, (CUdeviceptr to, type value, size_t count), fill(on, to, value, sizeof value, count))           \
    STREAM_ENTRY(later, (CUdeviceptr to, type value, size_t count, CUstream stream),                                   \
                 fill(on, to, value, sizeof value, count))

FILL_ENTRIES(cuMemsetD8_v2, cuMemsetD8Async, unsigned char)
FILL_ENTRIES(cuMemsetD16_v2, cuMemsetD16Async, unsigned short)
FILL_ENTRIES(cuMemsetD32_v2, cuMemsetD32Async, unsigned int)
