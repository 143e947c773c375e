"""The CUDA driver by ctypes, for loads and questions that need no framework.

Entries are looked up in `libcuda.so.1` as a statically linked runtime does it, so whatever is preloaded sees the calls,
and the simulated driver can stand in for a card.
"""

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

from .driver_structures import Part

KERNELS = Path(__file__).with_name("kernels.ptx")
MULTIPROCESSORS = 16
NON_BLOCKING = 1
WITHOUT_TIMING = 2
ALL_MULTIPROCESSORS = 1
WITH_DEFAULT_STREAM = 1
BLOCK_THREADS = 128


class DriverError(Exception):
    def __init__(self, entry: str, code: int) -> None:
        super().__init__(f"{entry} answered {code}, expected 0")
        self.code = code


class Driver:
    """One card, its primary context current in the calling thread."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.context = c_void_p()
        self.call("cuInit", 0)
        self.open()
        self.enter()

    def open(self) -> None:
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), 0)

    def enter(self) -> None:
        """In a thread of its own, before anything else."""
        self.call("cuCtxSetCurrent", self.context)

    def has(self, entry: str) -> bool:
        return hasattr(self.library, entry)

    def try_call(self, entry: str, *arguments: object) -> int:
        return getattr(self.library, entry)(*arguments)

    def call(self, entry: str, *arguments: object) -> None:
        code = self.try_call(entry, *arguments)
        if code:
            raise DriverError(entry, code)

    def multiprocessors(self) -> int:
        count = c_int()
        self.call("cuDeviceGetAttribute", byref(count), MULTIPROCESSORS, 0)
        return count.value

    def stream(self) -> c_void_p:
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), NON_BLOCKING)
        return stream

    def synchronize(self) -> None:
        self.call("cuCtxSynchronize")

    def allocate(self, size: int) -> c_uint64:
        pointer = c_uint64()
        self.call("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        return pointer

    def pinned(self, size: int) -> c_void_p:
        pointer = c_void_p()
        self.call("cuMemHostAlloc", byref(pointer), c_size_t(size), 0)
        return pointer

    def kernels(self) -> c_void_p:
        module = c_void_p()
        self.call("cuModuleLoadData", byref(module), KERNELS.read_bytes() + b"\0")
        return module

    def kernel(self, module: c_void_p, name: str) -> c_void_p:
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, name.encode())
        return function


class GreenDriver(Driver):
    """In a green context that has the whole card."""

    def open(self) -> None:
        part, description, green = Part(), c_void_p(), c_void_p()
        self.call("cuDeviceGetDevResource", 0, byref(part), ALL_MULTIPROCESSORS)
        self.call("cuDevResourceGenerateDesc", byref(description), byref(part), 1)
        self.call("cuGreenCtxCreate", byref(green), description, 0, WITH_DEFAULT_STREAM)
        self.call("cuCtxFromGreenCtx", byref(self.context), green)


class Launch:
    """A kernel with its arguments, which are looked at by the driver whenever it is launched."""

    def __init__(
        self, driver: Driver, function: c_void_p, arguments: list[c_uint64 | c_uint], blocks: int, stream: c_void_p
    ) -> None:
        self.arguments = arguments
        pointers = (c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        self._frame = (function, blocks, 1, 1, BLOCK_THREADS, 1, 1, 0, stream, pointers, None)
        self._driver = driver

    def submit(self) -> None:
        self._driver.call("cuLaunchKernel", *self._frame)


class Fence:
    """A moment in a stream that can be waited for."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._event = c_void_p()
        driver.call("cuEventCreate", byref(self._event), WITHOUT_TIMING)

    def record(self, stream: c_void_p | None) -> None:
        self._driver.call("cuEventRecord", self._event, stream)

    def wait(self) -> None:
        self._driver.call("cuEventSynchronize", self._event)
