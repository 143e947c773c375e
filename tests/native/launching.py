"""What programs under test need to launch as they like: kernels of any length, on streams that may wait for a flag."""

import ctypes
import time
from collections.abc import Callable

from tests.native.computing import MS as MS
from tests.native.computing import begin, driver, kernel
from tests.native.computing import launch as launch_kernel
from tests.native.computing import stream as stream
from tests.native.looking import cuda as cuda

HOST_MAPPED = 3
lib = driver
begin()
spin, collective = kernel(b"spin"), kernel(b"_Z34ncclDevKernel_AllReduce_Sum_f32_RING")


def made(entry: str, *arguments: object) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    code = getattr(lib, entry)(ctypes.byref(handle), *arguments)
    assert code == 0, f"{entry}: {code}"
    return handle


def launch(ns: int, on: ctypes.c_void_p | None = None, kernel: ctypes.c_void_p = spin) -> int:
    return launch_kernel(kernel, on, ns)


def wait(on: ctypes.c_void_p | None = None) -> int:
    return lib.cuStreamSynchronize(on)


def seconds(call: Callable[[], int]) -> float:
    began = time.monotonic()
    assert call() == 0
    return time.monotonic() - began


def flag() -> tuple[ctypes.c_void_p, ctypes.c_uint64]:
    """Memory of the host, and its address for the card."""
    memory = made("cuMemHostAlloc", ctypes.c_size_t(64), HOST_MAPPED)
    address = ctypes.c_uint64()
    assert lib.cuMemHostGetDevicePointer_v2(ctypes.byref(address), memory, 0) == 0
    ctypes.memset(memory, 0, 64)
    return memory, address
