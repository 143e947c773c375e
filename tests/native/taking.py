"""Every way to get memory of a card that programs have, each as a function: bytes in, code and the way back out."""

import ctypes
from collections.abc import Callable
from functools import partial

from tests.native.looking import cuda

Taken = tuple[int, Callable[[], int]]
DEVICE, HALF, FLOAT = 1, 0x10, 0x20
WIDTH = 1024

lib = cuda.library
u64, size = ctypes.c_uint64, ctypes.c_size_t


class Flat(ctypes.Structure):
    _fields_ = (("width", size), ("height", size), ("format", ctypes.c_int), ("channels", ctypes.c_uint))


class NarrowFlat(ctypes.Structure):
    """As the first version of the entry has it."""

    _fields_ = (
        ("width", ctypes.c_uint),
        ("height", ctypes.c_uint),
        ("format", ctypes.c_int),
        ("channels", ctypes.c_uint),
    )


class NarrowDeep(ctypes.Structure):
    _fields_ = (
        ("width", ctypes.c_uint),
        ("height", ctypes.c_uint),
        ("depth", ctypes.c_uint),
        ("format", ctypes.c_int),
        ("channels", ctypes.c_uint),
        ("flags", ctypes.c_uint),
    )


class Deep(ctypes.Structure):
    _fields_ = (
        ("width", size),
        ("height", size),
        ("depth", size),
        ("format", ctypes.c_int),
        ("channels", ctypes.c_uint),
        ("flags", ctypes.c_uint),
    )


class Place(ctypes.Structure):
    """The beginning of the properties of a pool, and of memory by handle."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", ctypes.c_int),
        ("id", ctypes.c_int),
        ("rest", ctypes.c_byte * 72),
    )


def alloc(nbytes: int) -> Taken:
    pointer = u64()
    return lib.cuMemAlloc_v2(ctypes.byref(pointer), size(nbytes)), partial(lib.cuMemFree_v2, pointer)


def managed(nbytes: int) -> Taken:
    pointer = u64()
    return lib.cuMemAllocManaged(ctypes.byref(pointer), size(nbytes), 1), partial(lib.cuMemFree_v2, pointer)


def pitch(nbytes: int) -> Taken:
    """Rows of half the pitch, so that the card gives twice what is asked for."""
    pointer, found, row = u64(), size(), 256
    code = lib.cuMemAllocPitch_v2(ctypes.byref(pointer), ctypes.byref(found), size(row), size(nbytes // row // 2), 4)
    return code, partial(lib.cuMemFree_v2, pointer)


def array(nbytes: int) -> Taken:
    handle, wish = u64(), Flat(WIDTH, nbytes // WIDTH // 8, FLOAT, 2)
    return lib.cuArrayCreate_v2(ctypes.byref(handle), ctypes.byref(wish)), partial(lib.cuArrayDestroy, handle)


def array_v1(nbytes: int) -> Taken:
    handle, wish = u64(), NarrowFlat(WIDTH, nbytes // WIDTH // 8, FLOAT, 2)
    return lib.cuArrayCreate(ctypes.byref(handle), ctypes.byref(wish)), partial(lib.cuArrayDestroy, handle)


def array_3d_v1(nbytes: int) -> Taken:
    handle, wish = u64(), NarrowDeep(WIDTH, 64, nbytes // WIDTH // 64 // 8, HALF, 4, 0)
    return lib.cuArray3DCreate(ctypes.byref(handle), ctypes.byref(wish)), partial(lib.cuArrayDestroy, handle)


def array_3d(nbytes: int) -> Taken:
    handle, wish = u64(), Deep(WIDTH, 64, nbytes // WIDTH // 64 // 8, HALF, 4, 0)
    return lib.cuArray3DCreate_v2(ctypes.byref(handle), ctypes.byref(wish)), partial(lib.cuArrayDestroy, handle)


def mipmapped(nbytes: int) -> Taken:
    """Three levels, a third more than the first."""
    handle, wish = u64(), Deep(WIDTH, nbytes * 3 // 4 // WIDTH // 4, 0, FLOAT, 1, 0)
    code = lib.cuMipmappedArrayCreate(ctypes.byref(handle), ctypes.byref(wish), 3)
    return code, partial(lib.cuMipmappedArrayDestroy, handle)


def create(nbytes: int, device: int = 0) -> Taken:
    handle, wish = u64(), Place(1, 0, DEVICE, device)
    return lib.cuMemCreate(ctypes.byref(handle), size(nbytes), ctypes.byref(wish), u64(0)), partial(
        lib.cuMemRelease, handle
    )


def mapped(nbytes: int) -> Taken:
    """The handle is let go of at once; the mapping keeps the memory."""
    handle, wish, address = u64(), Place(1, 0, DEVICE, 0), u64()
    code = lib.cuMemCreate(ctypes.byref(handle), size(nbytes), ctypes.byref(wish), u64(0))
    if code:
        return code, lambda: code
    assert lib.cuMemAddressReserve(ctypes.byref(address), size(nbytes), size(0), u64(0), u64(0)) == 0
    assert lib.cuMemMap(address, size(nbytes), size(0), handle, u64(0)) == 0
    assert lib.cuMemRelease(handle) == 0
    return 0, partial(lib.cuMemUnmap, address, size(nbytes))


def stream_ordered(nbytes: int, suffix: str = "") -> Taken:
    pointer = u64()
    code = lib[f"cuMemAllocAsync{suffix}"](ctypes.byref(pointer), size(nbytes), None)
    return code, partial(lib[f"cuMemFreeAsync{suffix}"], pointer, None)


def make_pool(device: int = 0) -> ctypes.c_uint64:
    pool, wish = u64(), Place(1, 0, DEVICE, device)
    assert lib.cuMemPoolCreate(ctypes.byref(pool), ctypes.byref(wish)) == 0
    return pool


CODE = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 nanoseconds) { ret; }
"""


modules: list[ctypes.c_void_p] = []


def load(count: int) -> int:
    """Modules, each with a kernel; the code of the last load."""
    for _ in range(count):
        module = ctypes.c_void_p()
        if code := lib.cuModuleLoadData(ctypes.byref(module), CODE):
            return code
        modules.append(module)
    return 0


def unload() -> None:
    while modules:
        assert lib.cuModuleUnload(modules.pop()) == 0


pools: list[ctypes.c_uint64] = []


def pool_of_device() -> ctypes.c_uint64:
    pool = u64()
    assert lib.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0) == 0
    return pool


def pool_of_location() -> ctypes.c_uint64:
    pool, location = u64(), (ctypes.c_int * 2)(DEVICE, 0)
    assert lib.cuMemGetDefaultMemPool(ctypes.byref(pool), location, 1) == 0
    return pool


def from_pool(nbytes: int, suffix: str = "", found: Callable[[], ctypes.c_uint64] = make_pool) -> Taken:
    if not pools:
        pools.append(found())
    pointer = u64()
    code = lib[f"cuMemAllocFromPoolAsync{suffix}"](ctypes.byref(pointer), size(nbytes), pools[0], None)
    return code, partial(lib[f"cuMemFreeAsync{suffix}"], pointer, None)


WAYS: dict[str, Callable[[int], Taken]] = {
    "alloc": alloc,
    "managed": managed,
    "pitch": pitch,
    "array": array,
    "array_v1": array_v1,
    "array_3d_v1": array_3d_v1,
    "array_3d": array_3d,
    "mipmapped": mipmapped,
    "create": create,
    "mapped": mapped,
    "stream_ordered": stream_ordered,
    "stream_ordered_ptsz": partial(stream_ordered, suffix="_ptsz"),
    "from_pool": from_pool,
    "from_pool_ptsz": partial(from_pool, suffix="_ptsz"),
    "from_pool_of_device": partial(from_pool, found=pool_of_device),
    "from_pool_of_location": partial(from_pool, found=pool_of_location),
}


def fill(way: str, nbytes: int) -> tuple[int, list[Callable[[], int]], int]:
    """Take until refused: how many, how to give each back, and the code of the refusal."""
    backs: list[Callable[[], int]] = []
    while True:
        code, back = WAYS[way](nbytes)
        if code:
            return len(backs), backs, code
        backs.append(back)
