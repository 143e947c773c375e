"""What programs under test need to launch: kernels that take as long as they are told, streams, events and flags."""

import ctypes
import time

from tests.native.looking import cuda

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 ns) { ret; }
.visible .entry ncclDevKernel_AllReduce(.param .u64 ns) { ret; }
"""
MS = 1_000_000
lib = cuda.library
assert cuda.init() == 0
assert cuda.enter() == 0


def made(entry: str, *arguments: object) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    code = getattr(lib, entry)(ctypes.byref(handle), *arguments)
    assert code == 0, f"{entry}: {code}"
    return handle


module = made("cuModuleLoadData", PTX)
spin = made("cuModuleGetFunction", module, b"spin")
collective = made("cuModuleGetFunction", module, b"ncclDevKernel_AllReduce")


def stream() -> ctypes.c_void_p:
    return made("cuStreamCreate", 1)


def launch(ns: int, on: ctypes.c_void_p | None = None, kernel: ctypes.c_void_p = spin) -> int:
    parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(ctypes.c_uint64(ns)), ctypes.c_void_p))
    return lib.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, on, parameters, None)


def wait(on: ctypes.c_void_p | None = None) -> int:
    return lib.cuStreamSynchronize(on)


def seconds(call) -> float:
    began = time.monotonic()
    assert call() == 0
    return time.monotonic() - began


def flag() -> tuple[ctypes.c_void_p, ctypes.c_uint64]:
    """Memory of the host, and its address for the card."""
    memory = made("cuMemHostAlloc", ctypes.c_size_t(64), 3)
    address = ctypes.c_uint64()
    assert lib.cuMemHostGetDevicePointer_v2(ctypes.byref(address), memory, 0) == 0
    ctypes.memset(memory, 0, 64)
    return memory, address
