/* What waits for the card, and streams that go. Time that was waited is not time in which a program could have
   launched. */
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

/* ---- streams that go ------------------------------------------------------------------------------------------ */

#define DESTROY_STREAM(name)                                                                                           \
    CUresult name(CUstream stream) {                                                                                   \
        captures_drop_stream(stream);                                                                                  \
        if (is_gated())                                                                                                \
            lanes_drop_stream(stream);                                                                                 \
        return CALL(name, stream);                                                                                     \
    }

DESTROY_STREAM(cuStreamDestroy)
DESTROY_STREAM(cuStreamDestroy_v2)
