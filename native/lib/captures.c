/* Captures: while a stream records a graph nothing must be asked of it, and no other thread's question may break it. */
#define _GNU_SOURCE
#include "compute.h"

#define RELAXED 2

_Atomic int captures_open;      /* those that have begun and not ended; never too low */

int stream_is_capturing(CUstream stream) {
    int status = 0;
    return real.cuStreamIsCapturing && (real.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != 0);
}

/* Also where nobody captures yet: a capture of another thread may begin while this one asks. */
capture_guard_t captures_guard(void) {
    capture_guard_t guard = {.mode = RELAXED};
    if (real.cuThreadExchangeStreamCaptureMode)
        guard.is_changed = real.cuThreadExchangeStreamCaptureMode(&guard.mode) == CUDA_SUCCESS;
    return guard;
}

void captures_unguard(capture_guard_t guard) {
    if (guard.is_changed)
        real.cuThreadExchangeStreamCaptureMode(&guard.mode);
}

/* A stream that goes takes its capture with it. */
void captures_drop_stream(CUstream stream) {
    if (captures_open && stream_is_capturing(stream))
        captures_open--;
}

void forget_captures(void) {
    captures_open = 0;
}

static CUresult begun(CUresult result) {
    if (result != CUDA_SUCCESS)
        captures_open--;
    return result;
}

/* Segments end before, because their second event would become part of the graph. */
#define BEGIN(...)                                                                                                     \
    do {                                                                                                               \
        gates_close_segments();                                                                                        \
        captures_open++;                                                                                               \
        return begun(__VA_ARGS__);                                                                                     \
    } while (0)

CUresult cuStreamBeginCapture(CUstream stream) {
    BEGIN(CALL(cuStreamBeginCapture, stream));
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
    BEGIN(CALL(cuStreamBeginCapture_ptsz, stream));
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
    BEGIN(CALL(cuStreamBeginCapture_v2, stream, mode));
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode) {
    BEGIN(CALL(cuStreamBeginCapture_v2_ptsz, stream, mode));
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const void *needs, const void *edges, size_t count,
                                     int mode) {
    BEGIN(CALL(cuStreamBeginCaptureToGraph, stream, graph, needs, edges, count, mode));
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const void *needs, const void *edges,
                                          size_t count, int mode) {
    BEGIN(CALL(cuStreamBeginCaptureToGraph_ptsz, stream, graph, needs, edges, count, mode));
}

/* An end that fails without a capture must not count down another's. */
#define END_CAPTURE(name)                                                                                              \
    CUresult name(CUstream stream, CUgraph *graph) {                                                                   \
        int was_capturing = captures_open && stream_is_capturing(stream);                                              \
        CUresult result = CALL(name, stream, graph);                                                                   \
        if (was_capturing)                                                                                             \
            captures_open--;                                                                                           \
        return result;                                                                                                 \
    }

END_CAPTURE(cuStreamEndCapture)
END_CAPTURE(cuStreamEndCapture_ptsz)
