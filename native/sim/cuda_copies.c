/* Copies and fills. Between host and card they are on engines of their own; within a card they are work of the card. */
#define _GNU_SOURCE
#include "cuda_blocks.h"
#include "cuda_graphs.h"

#define DEFAULT_ENTRY(name, parameters, action) STREAM_ENTRY_AS(name, name##_ptds, parameters, NULL, action)

static void *address_of(CUdeviceptr pointer) {
    return (void *)(uintptr_t)pointer;
}

static CUresult check_copy(const op_t *op) {
    CUdeviceptr to = (uintptr_t)op->copy.to, from = (uintptr_t)op->copy.from;
    int is_wrong = op->copy.engine != FROM_CARD && !is_device_memory(to, op->copy.bytes);
    is_wrong |= op->copy.engine != TO_CARD && !is_device_memory(from, op->copy.bytes);
    return is_wrong || to == 0 || from == 0 ? INVALID_VALUE : SUCCESS;
}

/* Only copies of pinned memory go on while the program does; others are done when the call returns. */
static int is_pageable(const op_t *op) {
    if (op->copy.engine == ON_CARD)
        return 0;
    return !is_host_memory(op->copy.engine == TO_CARD ? op->copy.from : op->copy.to);
}

static CUresult copy(stream_t *stream, void *to, const void *from, size_t bytes, engine_t engine, int is_async) {
    op_t op = {.kind = COPY, .copy = {to, from, bytes, engine}};
    if (bytes == 0)
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
