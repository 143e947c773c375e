/* Copies and fills. Within the card they take its time and ask for it. Between the host and the card they go by engines
   of their own and are not paid, so no segment may have one in it. Where an entry does not say which it is, the
   addresses do. */
#define _GNU_SOURCE
#include "entry_bodies.h"

static int is_of_card(CUdeviceptr pointer) {
    unsigned int type = 0;
    return real.cuPointerGetAttribute &&
           real.cuPointerGetAttribute(&type, POINTER_MEMORY_TYPE, pointer) == CUDA_SUCCESS && type == MEMORY_OF_CARD;
}

static int is_on_card(int memory, CUdeviceptr pointer) {
    return memory == MEMORY_OF_CARD || memory == MEMORY_IN_ARRAY || (memory == MEMORY_ANYWHERE && is_of_card(pointer));
}

#define AS_ENTRY(name) ((void *)(uintptr_t)&name)

/* ---- within the card ------------------------------------------------------------------------------------------ */

#define COPY_WITHIN(name, stream_of)                                                                                   \
    CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {                                   \
        ASKING(NO_KERNEL, stream_of(stream), AS_ENTRY(name), bytes, CALL(name, to, from, bytes, stream));              \
    }

#define COPY_WITHIN_NOW(name, stream)                                                                                  \
    CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes) {                                                    \
        ASKING(NO_KERNEL, stream, AS_ENTRY(name), bytes, CALL(name, to, from, bytes));                                 \
    }

#define FILL(name, type, stream_of)                                                                                    \
    CUresult name(CUdeviceptr to, type value, size_t count, CUstream stream) {                                         \
        ASKING(NO_KERNEL, stream_of(stream), AS_ENTRY(name), count, CALL(name, to, value, count, stream));             \
    }

#define FILL_NOW(name, type, stream)                                                                                   \
    CUresult name(CUdeviceptr to, type value, size_t count) {                                                          \
        ASKING(NO_KERNEL, stream, AS_ENTRY(name), count, CALL(name, to, value, count));                                \
    }

#define FILL_PLANE(name, type, stream_of)                                                                              \
    CUresult name(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream) {            \
        ASKING(NO_KERNEL, stream_of(stream), AS_ENTRY(name), width * height,                                           \
               CALL(name, to, pitch, value, width, height, stream));                                                   \
    }

#define FILL_PLANE_NOW(name, type, stream)                                                                             \
    CUresult name(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height) {                             \
        ASKING(NO_KERNEL, stream, AS_ENTRY(name), width * height, CALL(name, to, pitch, value, width, height));        \
    }

#define FOR_BOTH_STREAMS(ENTRY, name)                                                                                  \
    ENTRY(name, of_all)                                                                                                \
    ENTRY(name##_ptsz, of_thread)

#define FOR_BOTH_DEFAULTS(ENTRY, name)                                                                                 \
    ENTRY(name, NULL)                                                                                                  \
    ENTRY(name##_ptds, PER_THREAD_STREAM)

#define FILLS(now, later, plane_now, plane_later, type)                                                                \
    FILL_NOW(now, type, NULL)                                                                                          \
    FILL_NOW(now##_ptds, type, PER_THREAD_STREAM)                                                                      \
    FILL(later, type, of_all)                                                                                          \
    FILL(later##_ptsz, type, of_thread)                                                                                \
    FILL_PLANE_NOW(plane_now, type, NULL)                                                                              \
    FILL_PLANE_NOW(plane_now##_ptds, type, PER_THREAD_STREAM)                                                          \
    FILL_PLANE(plane_later, type, of_all)                                                                              \
    FILL_PLANE(plane_later##_ptsz, type, of_thread)

FOR_BOTH_STREAMS(COPY_WITHIN, cuMemcpyDtoDAsync_v2)
FOR_BOTH_DEFAULTS(COPY_WITHIN_NOW, cuMemcpyDtoD_v2)
FILLS(cuMemsetD8_v2, cuMemsetD8Async, cuMemsetD2D8_v2, cuMemsetD2D8Async, unsigned char)
FILLS(cuMemsetD16_v2, cuMemsetD16Async, cuMemsetD2D16_v2, cuMemsetD2D16Async, unsigned short)
FILLS(cuMemsetD32_v2, cuMemsetD32Async, cuMemsetD2D32_v2, cuMemsetD2D32Async, unsigned int)

/* ---- between the host and the card, and between cards --------------------------------------------------------- */

#define COPY(name, to_type, from_type, stream_of)                                                                      \
    CUresult name(to_type to, from_type from, size_t bytes, CUstream stream) {                                         \
        ASIDE(stream_of(stream), CALL(name, to, from, bytes, stream));                                                 \
    }

#define COPY_NOW(name, to_type, from_type)                                                                             \
    CUresult name(to_type to, from_type from, size_t bytes) {                                                          \
        WAITING(CALL(name, to, from, bytes));                                                                          \
    }

#define PEER_COPY(name, stream_of)                                                                                     \
    CUresult name(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes, CUstream stream) {  \
        ASIDE(stream_of(stream), CALL(name, to, there, from, here, bytes, stream));                                    \
    }

#define PEER_COPY_NOW(name, stream)                                                                                    \
    CUresult name(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes) {                   \
        WAITING(CALL(name, to, there, from, here, bytes));                                                             \
    }

COPY(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, of_all)
COPY(cuMemcpyHtoDAsync_v2_ptsz, CUdeviceptr, const void *, of_thread)
COPY(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, of_all)
COPY(cuMemcpyDtoHAsync_v2_ptsz, void *, CUdeviceptr, of_thread)
COPY_NOW(cuMemcpyHtoD_v2, CUdeviceptr, const void *)
COPY_NOW(cuMemcpyHtoD_v2_ptds, CUdeviceptr, const void *)
COPY_NOW(cuMemcpyDtoH_v2, void *, CUdeviceptr)
COPY_NOW(cuMemcpyDtoH_v2_ptds, void *, CUdeviceptr)
FOR_BOTH_STREAMS(PEER_COPY, cuMemcpyPeerAsync)
FOR_BOTH_DEFAULTS(PEER_COPY_NOW, cuMemcpyPeer)

/* ---- either --------------------------------------------------------------------------------------------------- */

#define PAID_IF(is_within, stream, name, size, call, else_body)                                                        \
    if (!gate_is_open() && (is_within)) {                                                                              \
        ASKING(NO_KERNEL, stream, AS_ENTRY(name), size, call);                                                         \
    }                                                                                                                  \
    else_body

#define ANY_COPY(name, stream_of)                                                                                      \
    CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {                                   \
        PAID_IF(is_of_card(to) && is_of_card(from), stream_of(stream), name, bytes,                                    \
                CALL(name, to, from, bytes, stream),                                                                   \
                ASIDE(stream_of(stream), CALL(name, to, from, bytes, stream)));                                        \
    }

#define ANY_COPY_NOW(name, stream)                                                                                     \
    CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes) {                                                    \
        PAID_IF(is_of_card(to) && is_of_card(from), stream, name, bytes, CALL(name, to, from, bytes),                  \
                WAITING(CALL(name, to, from, bytes)));                                                                 \
    }

#define IS_SHAPED_WITHIN(wish)                                                                                         \
    (is_on_card((wish)->to.memory, (wish)->to.device) && is_on_card((wish)->from.memory, (wish)->from.device))

#define SHAPED_COPY(name, type, size, stream_of)                                                                       \
    CUresult name(const type *wish, CUstream stream) {                                                                 \
        PAID_IF(wish && IS_SHAPED_WITHIN(wish), stream_of(stream), name, size, CALL(name, wish, stream),               \
                ASIDE(stream_of(stream), CALL(name, wish, stream)));                                                   \
    }

#define SHAPED_COPY_NOW(name, type, size, stream)                                                                      \
    CUresult name(const type *wish) {                                                                                  \
        PAID_IF(wish && IS_SHAPED_WITHIN(wish), stream, name, size, CALL(name, wish), WAITING(CALL(name, wish)));      \
    }

#define PLANE(name, stream_of) SHAPED_COPY(name, CUDA_MEMCPY2D, wish->width * wish->height, stream_of)
#define PLANE_NOW(name, stream) SHAPED_COPY_NOW(name, CUDA_MEMCPY2D, wish->width * wish->height, stream)
#define BOX(name, stream_of) SHAPED_COPY(name, CUDA_MEMCPY3D, wish->width * wish->height * wish->depth, stream_of)
#define BOX_NOW(name, stream) SHAPED_COPY_NOW(name, CUDA_MEMCPY3D, wish->width * wish->height * wish->depth, stream)

FOR_BOTH_STREAMS(ANY_COPY, cuMemcpyAsync)
FOR_BOTH_DEFAULTS(ANY_COPY_NOW, cuMemcpy)
FOR_BOTH_STREAMS(PLANE, cuMemcpy2DAsync_v2)
FOR_BOTH_DEFAULTS(PLANE_NOW, cuMemcpy2D_v2)
FOR_BOTH_DEFAULTS(PLANE_NOW, cuMemcpy2DUnaligned_v2)
FOR_BOTH_STREAMS(BOX, cuMemcpy3DAsync_v2)
FOR_BOTH_DEFAULTS(BOX_NOW, cuMemcpy3D_v2)

/* ---- in batches ----------------------------------------------------------------------------------------------- */

/* What the first copy is, all of a batch are taken to be. */
static int is_batch_within(const CUdeviceptr *to, const CUdeviceptr *from, size_t count) {
    return to && from && count && is_of_card(*to) && is_of_card(*from);
}

static uint64_t batch_bytes(const size_t *bytes, size_t count) {
    uint64_t sum = 0;
    for (size_t one = 0; bytes && one < count; one++)
        sum += bytes[one];
    return sum;
}

#define BATCH to, from, bytes, count, manners, firsts, manner_count
#define BATCH_PARAMETERS                                                                                               \
    CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count, void *manners, size_t *firsts, size_t manner_count

#define BATCH_COPY_BODY(name, stream, call)                                                                            \
    PAID_IF(is_batch_within(to, from, count), stream, name, batch_bytes(bytes, count), call, ASIDE(stream, call))

#define FIRST_BATCH_COPY(name, stream_of)                                                                              \
    CUresult name(BATCH_PARAMETERS, size_t *failed, CUstream stream) {                                                 \
        BATCH_COPY_BODY(name, stream_of(stream), CALL(name, BATCH, failed, stream));                                   \
    }

#define BATCH_COPY(name, stream_of)                                                                                    \
    CUresult name(BATCH_PARAMETERS, CUstream stream) {                                                                 \
        BATCH_COPY_BODY(name, stream_of(stream), CALL(name, BATCH, stream));                                           \
    }

FOR_BOTH_STREAMS(FIRST_BATCH_COPY, cuMemcpyBatchAsync)
FOR_BOTH_STREAMS(BATCH_COPY, cuMemcpyBatchAsync_v2)
