"""Memory of this host that a CUDA device copies from and to by itself, at several times the speed of other memory.

Pages must be pinned for that, which takes longer than one copy. So only mappings are pinned: they are shared memory,
which carries one tensor after the other, and they say when they end. The driver is asked directly, because a refusal
of the runtime library's would be reported by whatever torch does next.
"""

import ctypes
import functools
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST_BYTES = 4 << 20
FOR_ALL_CONTEXTS = 1


class Pinning:
    """Mappings that the driver knows. A thread that pins must have used the device before."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self._pinned: set[int] = set()

    def pin(self, memory: NDArray[np.uint8]) -> bool:
        """Says whether a device can now fetch from there by itself. A refusal costs speed and nothing else."""
        mapping = mapping_of(memory)
        if mapping is None or memory.nbytes < LEAST_BYTES:
            return False
        with self._lock:
            return ctypes.addressof(mapping) in self._pinned or self._register(mapping)

    def _register(self, mapping: Any) -> bool:
        context, address = ctypes.c_void_p(), ctypes.addressof(mapping)
        size = ctypes.c_size_t(ctypes.sizeof(mapping))
        if self._driver.cuCtxGetCurrent(ctypes.byref(context)) or not context.value:
            return False
        if self._driver.cuMemHostRegister_v2(ctypes.c_void_p(address), size, FOR_ALL_CONTEXTS):
            return False
        self._pinned.add(address)
        # The newest finalizer of an object runs first: the memory is unpinned before it is unmapped.
        weakref.finalize(mapping, self._unregister, context, address).atexit = False
        return True

    def _unregister(self, context: ctypes.c_void_p, address: int) -> None:
        """In whatever thread the garbage collector comes, perhaps one that has the lock."""
        self._pinned.discard(address)
        if self._driver.cuCtxPushCurrent_v2(context):
            return
        self._driver.cuMemHostUnregister(ctypes.c_void_p(address))
        self._driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


@functools.cache
def pinning() -> Pinning | None:
    """Of this process, or None where there is no driver."""
    try:
        return Pinning(ctypes.CDLL("libcuda.so.1"))
    except OSError:
        return None


def mapping_of(memory: NDArray[np.uint8]) -> Any | None:
    """What keeps the memory mapped, if it is a mapping of ours and no memory of another kind."""
    owner: Any = memory
    while owner is not None and not issubclass(type(owner), ctypes.Array):
        owner = getattr(owner, "obj", getattr(owner, "base", None))
    return owner
