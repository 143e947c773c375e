"""What programs under test need to compute: kernels, streams and events, by the driver's C interface."""

import ctypes

from tests.native.looking import cuda

MS = 1_000_000
NON_BLOCKING = 1
KERNELS = b"""
.version 7.0
.target sm_70
.visible .entry spin(.param .u64 ns) { ret; }
.visible .entry _Z34ncclDevKernel_AllReduce_Sum_f32_RING(.param .u64 ns) { ret; }
.visible .entry trap() { ret; }
"""
"""Of a simulated card the names are enough."""

driver = cuda.library


def begin(device: int = 0) -> None:
    """Start as a program starts, with the context of the device."""
    assert (cuda.init() or cuda.enter(device)) == 0


def load() -> ctypes.c_void_p:
    module = ctypes.c_void_p()
    assert driver.cuModuleLoadData(ctypes.byref(module), KERNELS) == 0
    return module


def kernel(name: bytes) -> ctypes.c_void_p:
    function = ctypes.c_void_p()
    assert driver.cuModuleGetFunction(ctypes.byref(function), load(), name) == 0
    return function


def stream() -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(made), NON_BLOCKING) == 0
    return made


def launch(function: ctypes.c_void_p, to: ctypes.c_void_p | None, ns: int = 0, entry: str = "cuLaunchKernel") -> int:
    """The code of the launch; `ns` is how long a kernel that spins takes."""
    length = ctypes.c_uint64(ns)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(length))
    return getattr(driver, entry)(function, 1, 1, 1, 1, 1, 1, 0, to, parameters, None)


def mark(on: ctypes.c_void_p | None, entry: str = "cuEventRecord") -> ctypes.c_void_p:
    """An event that is recorded at the end of the stream."""
    event = ctypes.c_void_p()
    assert driver.cuEventCreate(ctypes.byref(event), 0) == 0
    assert getattr(driver, entry)(event, on) == 0
    return event


def elapsed_ms(first: ctypes.c_void_p, last: ctypes.c_void_p) -> float:
    found = ctypes.c_float()
    assert driver.cuEventSynchronize(last) == 0
    assert driver.cuEventElapsedTime(ctypes.byref(found), first, last) == 0
    return found.value


def wait_for_neighbour() -> None:
    """Until another process has work on the card, so that one's own takes longer than it is."""
    while timed_ms(4, 2) < 9:
        pass


def timed_ms(kernels: int, ms: int) -> float:
    """How long so many kernels are on the card, from the end of one before them to the end of the last."""
    spin, on = kernel(b"spin"), stream()
    launch(spin, on, 50 * MS)
    before = mark(on)
    for _ in range(kernels):
        launch(spin, on, ms * MS)
    return elapsed_ms(before, mark(on))
