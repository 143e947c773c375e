/* What the library does around an entry of the driver, as the body of the entry that stands before it: what takes the
   card's time asks, what waits for the card says so, and what does neither goes aside. */

#ifndef TESSERA_ENTRY_BODIES_H
#define TESSERA_ENTRY_BODIES_H

#include "compute.h"

static inline int is_gated(void) {
    return atomic_load_explicit(&gate_is_shut, memory_order_relaxed);
}

#define ASKING(kind, stream, what, size, call)                                                                         \
    lane_t *lane = gate_is_open() ? NULL : gate_enter(stream, kind, what, size);                                       \
    CUresult result = call;                                                                                            \
    if (__builtin_expect(lane != NULL, 0))                                                                             \
        gate_leave(lane);                                                                                              \
    return result

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

#endif
