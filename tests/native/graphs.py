"""Graphs with memory in them, as programs make them: recorded from a stream, or node by node."""

import ctypes

from tests.native.looking import MIB
from tests.native.taking import DEVICE, Place, lib, make_pool, size, u64

RELAXED = 2
FREE_AT_LAUNCH = 1
UPLOAD_TOO = 2
PER_THREAD = ctypes.c_void_p(2)
pointers: list[ctypes.c_uint64] = []
"""Of the graph that was made last."""


class Wish(ctypes.Structure):
    """What a node allocates."""

    _fields_ = (
        ("pool", Place),
        ("access", ctypes.c_void_p),
        ("access_count", size),
        ("bytes", size),
        ("pointer", u64),
    )


def recorded(
    mib: list[int], frees: bool = False, suffix: str = "", pool: ctypes.c_uint64 | None = None
) -> ctypes.c_uint64:
    stream, graph = ctypes.c_void_p(), u64()
    assert lib.cuStreamCreate(ctypes.byref(stream), 1) == 0
    if suffix:
        stream = PER_THREAD
    assert lib[f"cuStreamBeginCapture_v2{suffix}"](stream, RELAXED) == 0
    pointers.clear()
    for one in mib:
        pointer = u64()
        if pool:
            code = lib[f"cuMemAllocFromPoolAsync{suffix}"](ctypes.byref(pointer), size(one * MIB), pool, stream)
        else:
            code = lib[f"cuMemAllocAsync{suffix}"](ctypes.byref(pointer), size(one * MIB), stream)
        assert code == 0
        pointers.append(pointer)
    if frees:
        assert not any(lib[f"cuMemFreeAsync{suffix}"](pointer, stream) for pointer in pointers)
    assert lib[f"cuStreamEndCapture{suffix}"](stream, ctypes.byref(graph)) == 0
    return graph


def recorded_in_turn(mib: list[int]) -> ctypes.c_uint64:
    """Each is freed before the next is allocated."""
    stream, graph, pointer = ctypes.c_void_p(), u64(), u64()
    assert lib.cuStreamCreate(ctypes.byref(stream), 1) == 0
    assert lib.cuStreamBeginCapture_v2(stream, RELAXED) == 0
    for one in mib:
        assert lib.cuMemAllocAsync(ctypes.byref(pointer), size(one * MIB), stream) == 0
        assert lib.cuMemFreeAsync(pointer, stream) == 0
    assert lib.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
    return graph


def recorded_from_pool(mib: list[int]) -> ctypes.c_uint64:
    return recorded(mib, pool=make_pool())


def recorded_of_thread(mib: list[int]) -> ctypes.c_uint64:
    return recorded(mib, suffix="_ptsz")


def added(mib: list[int]) -> ctypes.c_uint64:
    graph, before = u64(), (u64 * 1)()
    assert lib.cuGraphCreate(ctypes.byref(graph), 0) == 0
    for place, one in enumerate(mib):
        node, wish = u64(), Wish(pool=Place(1, 0, DEVICE, 0), bytes=one * MIB)
        code = lib.cuGraphAddMemAllocNode(ctypes.byref(node), graph, before, size(min(place, 1)), ctypes.byref(wish))
        assert code == 0
        before[0] = node.value
    return graph


def ready(graph: ctypes.c_uint64, flags: int = 0) -> ctypes.c_uint64:
    made = u64()
    assert lib.cuGraphInstantiateWithFlags(ctypes.byref(made), graph, u64(flags)) == 0
    return made


class Readying(ctypes.Structure):
    _fields_ = (("flags", u64), ("stream", ctypes.c_void_p), ("failed", ctypes.c_void_p), ("result", ctypes.c_int))


def uploaded(graph: ctypes.c_uint64, suffix: str = "") -> int:
    """Made ready and uploaded in one."""
    wish = Readying(flags=UPLOAD_TOO)
    code = lib[f"cuGraphInstantiateWithParams{suffix}"](ctypes.byref(u64()), graph, ctypes.byref(wish))
    assert wish.flags == UPLOAD_TOO
    return code


def launch_recorded(graph: ctypes.c_uint64) -> int:
    """Into a stream that is recorded, so that it becomes a part of another graph."""
    stream, larger = ctypes.c_void_p(), u64()
    assert lib.cuStreamCreate(ctypes.byref(stream), 1) == 0
    assert lib.cuStreamBeginCapture_v2(stream, RELAXED) == 0
    code = lib.cuGraphLaunch(graph, stream)
    assert lib.cuStreamEndCapture(stream, ctypes.byref(larger)) == 0
    return code


def launch(graph: ctypes.c_uint64) -> int:
    return lib.cuGraphLaunch(graph, None) or lib.cuCtxSynchronize()


def upload(graph: ctypes.c_uint64) -> int:
    return lib.cuGraphUpload(graph, None)


def trim() -> int:
    return lib.cuDeviceGraphMemTrim(0)
