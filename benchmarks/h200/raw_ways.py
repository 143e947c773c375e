"""The ways in which programs come by memory of a card, each with how its blocks are written, read and given back.

All by the driver, because each framework uses few of them; one by the runtime library, which finds the driver itself.
"""

import ctypes
import os
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_size_t, c_uint64, c_ulonglong, c_void_p
from glob import glob
from typing import Any

from .driver import Driver, GreenDriver
from .driver_structures import (
    Access,
    Array3dShape,
    ArrayShape,
    Copy2d,
    HandleProperties,
    Location,
    PoolProperties,
)

BLOCK_MIB = 256
BLOCK = BLOCK_MIB << 20
WANTED_BLOCKS = 48
PINNED, DEVICE = 1, 1
READ_WRITE = 3
POSIX_FILE = 1
ATTACH_GLOBAL = 1
HOST_MEMORY, ARRAY_MEMORY = 1, 3
FLOAT, FLOAT_BYTES = 0x20, 4
EDGE = 8192
"""Of a square array of floats that is one block."""
THREAD_LOCAL = 1
TRIM_TO_NOTHING = c_size_t(0)
PATTERN = 0xA5


class Way:
    """Blocks that are addresses, taken and given back by two entries of the driver; other ways differ in a method."""

    opened = Driver
    """How the process comes by a context."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def take(self) -> Any | None:
        """A block, or none when refused."""
        pointer = c_uint64()
        return None if self.driver.try_call("cuMemAlloc_v2", byref(pointer), c_size_t(BLOCK)) else pointer

    def take_all(self) -> list[Any]:
        blocks: list[Any] = []
        while len(blocks) < WANTED_BLOCKS and (block := self.take()) is not None:
            blocks.append(block)
        return blocks

    def is_intact(self, blocks: list[Any]) -> bool:
        """Each block is written with a value of its own before the first is read."""
        for value, block in enumerate(blocks):
            self.write(block, PATTERN ^ value)
        return all(self.read(block) == PATTERN ^ value for value, block in enumerate(blocks))

    def write(self, block: Any, value: int) -> None:
        self.driver.call("cuMemsetD8_v2", self.address(block), ctypes.c_ubyte(value), c_size_t(BLOCK))

    def read(self, block: Any) -> int:
        """The last byte, which is the first to be missing."""
        found = ctypes.c_ubyte()
        end = c_uint64(self.address(block).value + BLOCK - 1)
        self.driver.call("cuMemcpyDtoH_v2", byref(found), end, c_size_t(1))
        return found.value

    def address(self, block: Any) -> c_uint64:
        return block

    def give_back(self, block: Any) -> None:
        self.driver.call("cuMemFree_v2", block)

    def finish(self) -> None:
        """After everything was given back."""


class InGreenContext(Way):
    """The primary context comes with the green one, and no entry says so."""

    opened = GreenDriver


class FreedInStream(Way):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._stream = driver.stream()

    def give_back(self, block: c_uint64) -> None:
        self.driver.call("cuMemFreeAsync", block, self._stream)

    def finish(self) -> None:
        self.driver.call("cuStreamSynchronize", self._stream)


class Pitched(Way):
    def take(self) -> c_uint64 | None:
        pointer, pitch = c_uint64(), c_size_t()
        code = self.driver.try_call(
            "cuMemAllocPitch_v2", byref(pointer), byref(pitch), c_size_t(1 << 20), c_size_t(BLOCK_MIB), 16
        )
        return None if code else pointer


class Managed(Way):
    def take(self) -> c_uint64 | None:
        pointer = c_uint64()
        code = self.driver.try_call("cuMemAllocManaged", byref(pointer), c_size_t(BLOCK), ATTACH_GLOBAL)
        return None if code else pointer


class Runtime(Way):
    """cudaMalloc of the runtime library, which finds the driver in its own way."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._runtime = ctypes.CDLL(find_runtime())

    def take(self) -> c_uint64 | None:
        pointer = c_uint64()
        if self._runtime.cudaMalloc(byref(pointer), c_size_t(BLOCK)):
            self._runtime.cudaGetLastError()
            return None
        return pointer

    def give_back(self, block: c_uint64) -> None:
        if code := self._runtime.cudaFree(block):
            raise OSError(f"cudaFree answered {code}, expected 0")


class Handles(Way):
    """Physical memory by handle, mapped to an address."""

    handle_types = 0

    def take(self) -> Any | None:
        handle = self.create()
        return None if handle is None else (handle, self.map(handle))

    def create(self) -> c_ulonglong | None:
        handle = c_ulonglong()
        properties = HandleProperties(PINNED, self.handle_types, Location(DEVICE, 0))
        code = self.driver.try_call("cuMemCreate", byref(handle), c_size_t(BLOCK), byref(properties), c_ulonglong(0))
        return None if code else handle

    def map(self, handle: c_ulonglong) -> c_uint64:
        address, size = c_uint64(), c_size_t(BLOCK)
        self.driver.call("cuMemAddressReserve", byref(address), size, c_size_t(0), c_uint64(0), c_ulonglong(0))
        self.driver.call("cuMemMap", address, size, c_size_t(0), handle, c_ulonglong(0))
        self.driver.call("cuMemSetAccess", address, size, byref(Access(Location(DEVICE, 0), READ_WRITE)), c_size_t(1))
        return address

    def unmap(self, handle: c_ulonglong, address: c_uint64) -> None:
        self.driver.call("cuMemUnmap", address, c_size_t(BLOCK))
        self.driver.call("cuMemAddressFree", address, c_size_t(BLOCK))
        self.driver.call("cuMemRelease", handle)

    def address(self, block: Any) -> c_uint64:
        return block[1]

    def give_back(self, block: Any) -> None:
        self.unmap(*block)


class Files(Handles):
    """Exported memory by handle, of which nothing but the file is kept."""

    handle_types = POSIX_FILE

    def take(self) -> int | None:
        handle, file = self.create(), ctypes.c_int()
        if handle is None:
            return None
        self.driver.call("cuMemExportToShareableHandle", byref(file), handle, POSIX_FILE, c_ulonglong(0))
        self.driver.call("cuMemRelease", handle)
        return file.value

    def write(self, block: int, value: int) -> None:
        with self._imported(block) as mapped:
            super().write(mapped, value)

    def read(self, block: int) -> int:
        with self._imported(block) as mapped:
            return super().read(mapped)

    def give_back(self, block: int) -> None:
        os.close(block)

    @contextmanager
    def _imported(self, file: int) -> Iterator[tuple[c_ulonglong, c_uint64]]:
        handle = c_ulonglong()
        self.driver.call("cuMemImportFromShareableHandle", byref(handle), c_void_p(file), POSIX_FILE)
        mapped = handle, self.map(handle)
        yield mapped
        self.driver.synchronize()
        self.unmap(*mapped)


class DefaultPool(Way):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._stream, self._pool = driver.stream(), c_void_p()
        driver.call("cuDeviceGetDefaultMemPool", byref(self._pool), 0)

    def take(self) -> c_uint64 | None:
        pointer = c_uint64()
        code = self.driver.try_call("cuMemAllocAsync", byref(pointer), c_size_t(BLOCK), self._stream)
        return None if code else pointer

    def is_intact(self, blocks: list[c_uint64]) -> bool:
        self.driver.call("cuStreamSynchronize", self._stream)
        return super().is_intact(blocks)

    def give_back(self, block: c_uint64) -> None:
        self.driver.call("cuMemFreeAsync", block, self._stream)

    def finish(self) -> None:
        self.driver.call("cuStreamSynchronize", self._stream)
        self.driver.call("cuMemPoolTrimTo", self._pool, TRIM_TO_NOTHING)


class PoolByHandle(DefaultPool):
    """The device's own pool, asked as if it were one of the program's."""

    def take(self) -> c_uint64 | None:
        pointer = c_uint64()
        code = self.driver.try_call(
            "cuMemAllocFromPoolAsync", byref(pointer), c_size_t(BLOCK), self._pool, self._stream
        )
        return None if code else pointer


class PoolByLocation(PoolByHandle):
    """The same pool, by the entry that came with CUDA 13."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        driver.call("cuMemGetDefaultMemPool", byref(self._pool), byref(Location(DEVICE, 0)), PINNED)


class OwnPool(PoolByHandle):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        properties = PoolProperties(type=PINNED, location=Location(DEVICE, 0))
        driver.call("cuMemPoolCreate", byref(self._pool), byref(properties))


class GraphNodes(DefaultPool):
    """Allocations that are captured, and made when the graph is launched. As many as are wanted or none."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._graphs: list[c_void_p] = []

    def take_all(self) -> list[c_uint64]:
        """The largest graph that is granted: one that is too large must fail as a whole, and harm nothing."""
        for count in range(WANTED_BLOCKS, 0, -1):
            if blocks := self._launch(count):
                return blocks
        return []

    def _launch(self, count: int) -> list[c_uint64]:
        graph, ready = c_void_p(), c_void_p()
        self.driver.call("cuStreamBeginCapture_v2", self._stream, THREAD_LOCAL)
        blocks = [block for _ in range(count) if (block := self.take()) is not None]
        if self.driver.try_call("cuStreamEndCapture", self._stream, byref(graph)) or len(blocks) < count:
            return []
        self._graphs.append(graph)
        is_granted = (
            not self.driver.try_call("cuGraphInstantiateWithFlags", byref(ready), graph, c_ulonglong(0))
            and not self.driver.try_call("cuGraphLaunch", ready, self._stream)
            and not self.driver.try_call("cuStreamSynchronize", self._stream)
        )
        if is_granted:
            return blocks
        self.driver.try_call("cuGraphExecDestroy", ready)
        self.driver.call("cuGraphDestroy", self._graphs.pop())
        return []

    def finish(self) -> None:
        """A graph stays until its blocks are given back."""
        self.driver.call("cuStreamSynchronize", self._stream)
        for graph in self._graphs:
            self.driver.call("cuGraphDestroy", graph)
        self._graphs.clear()
        self.driver.call("cuDeviceGraphMemTrim", 0)


class Arrays(Way):
    def take(self) -> c_void_p | None:
        array, shape = c_void_p(), ArrayShape(EDGE, EDGE, FLOAT, 1)
        return None if self.driver.try_call("cuArrayCreate_v2", byref(array), byref(shape)) else array

    def write(self, block: c_void_p, value: int) -> None:
        """The last row, because an array is written from memory of the host."""
        row = ctypes.create_string_buffer(bytes([value]) * EDGE * FLOAT_BYTES)
        self._copy(row, self.array(block), is_to_array=True)

    def read(self, block: c_void_p) -> int:
        row = ctypes.create_string_buffer(EDGE * FLOAT_BYTES)
        self._copy(row, self.array(block), is_to_array=False)
        return row.raw[-1]

    def array(self, block: c_void_p) -> c_void_p:
        return block

    def give_back(self, block: c_void_p) -> None:
        self.driver.call("cuArrayDestroy", block)

    def _copy(self, row: Any, array: c_void_p, is_to_array: bool) -> None:
        host, card = ("source", "target") if is_to_array else ("target", "source")
        copy = Copy2d(bytes=EDGE * FLOAT_BYTES, height=1)
        setattr(copy, f"{host}_memory", HOST_MEMORY)
        setattr(copy, f"{host}_host", ctypes.cast(row, c_void_p))
        setattr(copy, f"{card}_memory", ARRAY_MEMORY)
        setattr(copy, f"{card}_array", array)
        setattr(copy, f"{card}_y", EDGE - 1)
        self.driver.call("cuMemcpy2D_v2", byref(copy))


class Mipmaps(Arrays):
    """Mipmapped arrays of one level."""

    def take(self) -> c_void_p | None:
        mipmap, shape = c_void_p(), Array3dShape(EDGE, EDGE, 0, FLOAT, 1, 0)
        return None if self.driver.try_call("cuMipmappedArrayCreate", byref(mipmap), byref(shape), 1) else mipmap

    def array(self, block: c_void_p) -> c_void_p:
        level = c_void_p()
        self.driver.call("cuMipmappedArrayGetLevel", byref(level), block, 0)
        return level

    def give_back(self, block: c_void_p) -> None:
        self.driver.call("cuMipmappedArrayDestroy", block)


WAYS: dict[str, type[Way]] = {
    "cuMemAlloc": Way,
    "cudaMalloc": Runtime,
    "cuMemAllocPitch": Pitched,
    "cuMemAllocManaged": Managed,
    "cuMemCreate": Handles,
    "cuMemAllocAsync": DefaultPool,
    "cuMemAllocFromPoolAsync": OwnPool,
    "graph memory nodes": GraphNodes,
    "cuArrayCreate": Arrays,
    "cuMipmappedArrayCreate": Mipmaps,
    "cuMemCreate, kept by its file alone": Files,
    "the device's pool by its handle": PoolByHandle,
    "the device's pool by its location": PoolByLocation,
    "cuMemAlloc, freed in a stream": FreedInStream,
    "cuMemAlloc in a green context": InGreenContext,
}


def find_runtime() -> str:
    """As PyTorch's packages bring it, or as CUDA was installed."""
    places = (f"{sysconfig.get_path('purelib')}/nvidia/*/lib/libcudart.so.*", "/usr/local/cuda/lib64/libcudart.so.*")
    found = [path for place in places for path in sorted(glob(place))]
    return found[0] if found else "libcudart.so"
