/* What waits for the card. How long it waited is not time in which a program could have launched. */
#define _GNU_SOURCE
#include "entry_bodies.h"

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
