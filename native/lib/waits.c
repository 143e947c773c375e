/* What takes no time of the card's processors, and what waits for the card.

   Copies between the host and the card go by engines of their own: they are not paid, so no segment may have one in it.
   Whoever waits lets a sample go first, and how long it waited is not time in which it could have launched. */
#define _GNU_SOURCE
#include "compute.h"

static inline int is_gated(void) {
    return atomic_load_explicit(&gate_is_shut, memory_order_relaxed);
}

#define WAITING(call)                                                                                                  \
    if (!is_gated())                                                                                                   \
        return call;                                                                                                   \
    gate_pause();                                                                                                      \
    int64_t began = now_ns();                                                                                          \
    CUresult result = call;                                                                                            \
    gate_was_blocked(now_ns() - began);                                                                                \
    return result

#define ASIDE(stream, call)                                                                                            \
    if (is_gated())                                                                                                    \
        gate_set_apart(stream);                                                                                        \
    return call

#define COPY(name, to_type, from_type, stream_of)                                                                      \
    CUresult name(to_type to, from_type from, size_t bytes, CUstream stream) {                                         \
        ASIDE(stream_of(stream), CALL(name, to, from, bytes, stream));                                                 \
    }

#define SHAPED_COPY(name, stream_of)                                                                                   \
    CUresult name(const void *wish, CUstream stream) {                                                                 \
        ASIDE(stream_of(stream), CALL(name, wish, stream));                                                            \
    }

#define COPY_NOW(name, to_type, from_type)                                                                             \
    CUresult name(to_type to, from_type from, size_t bytes) {                                                          \
        WAITING(CALL(name, to, from, bytes));                                                                          \
    }

COPY(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, of_all)
COPY(cuMemcpyHtoDAsync_v2_ptsz, CUdeviceptr, const void *, of_thread)
COPY(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, of_all)
COPY(cuMemcpyDtoHAsync_v2_ptsz, void *, CUdeviceptr, of_thread)
SHAPED_COPY(cuMemcpy2DAsync_v2, of_all)
SHAPED_COPY(cuMemcpy2DAsync_v2_ptsz, of_thread)
SHAPED_COPY(cuMemcpy3DAsync_v2, of_all)
SHAPED_COPY(cuMemcpy3DAsync_v2_ptsz, of_thread)
COPY_NOW(cuMemcpyHtoD_v2, CUdeviceptr, const void *)
COPY_NOW(cuMemcpyHtoD_v2_ptds, CUdeviceptr, const void *)
COPY_NOW(cuMemcpyDtoH_v2, void *, CUdeviceptr)
COPY_NOW(cuMemcpyDtoH_v2_ptds, void *, CUdeviceptr)
COPY_NOW(cuMemcpy, CUdeviceptr, CUdeviceptr)
COPY_NOW(cuMemcpy_ptds, CUdeviceptr, CUdeviceptr)

CUresult cuStreamSynchronize(CUstream stream) {
    WAITING(CALL(cuStreamSynchronize, stream));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream) {
    WAITING(CALL(cuStreamSynchronize_ptsz, stream));
}

CUresult cuEventSynchronize(CUevent event) {
    WAITING(CALL(cuEventSynchronize, event));
}

CUresult cuCtxSynchronize(void) {
    WAITING(CALL(cuCtxSynchronize, ));
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
    WAITING(CALL(cuCtxSynchronize_v2, context));
}

CUresult cuStreamDestroy(CUstream stream) {
    if (is_gated())
        lanes_drop_stream(stream);
    return CALL(cuStreamDestroy, stream);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    if (is_gated())
        lanes_drop_stream(stream);
    return CALL(cuStreamDestroy_v2, stream);
}
