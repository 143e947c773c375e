"""Memory of a file descriptor, as an array that keeps it mapped.

`mmap.mmap` holds a duplicate of the descriptor for as long as it is mapped. A process that has a thousand tensors would
then have a thousand descriptors fewer for its own work. So the call is made directly; the mapping ends when the last
array that views it is gone. These calls also let other Python threads run, which `mmap.madvise` does not.
"""

import ctypes
import errno
import mmap
import os
import weakref

import numpy as np
from numpy.typing import NDArray

_libc = ctypes.CDLL(None, use_errno=True)
_mmap = _libc.mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
]
_munmap = _libc.munmap
_munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_madvise = _libc.madvise
_madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

FAILED = ctypes.c_void_p(-1).value
POPULATE_WRITE = 23

Bytes = NDArray[np.uint8]


def map_shared(fd: int, size: int) -> Bytes:
    """All of a file, readable and writable, shared with whoever else maps it; unmapped with the last view."""
    address = _mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    if address in (None, FAILED):
        number = ctypes.get_errno()
        raise OSError(number, f"mapping {size} bytes of shared memory failed: {os.strerror(number)}")
    memory = (ctypes.c_uint8 * size).from_address(address)
    weakref.finalize(memory, _munmap, address, size).atexit = False
    return view_again(memoryview(memory))


def view_again(buffer: memoryview, start: int = 0, nbytes: int = -1) -> Bytes:
    """An array of its own over mapped memory: every array made from it keeps this one alive, and no other."""
    return np.frombuffer(buffer, dtype=np.uint8, count=nbytes, offset=start)


def fill_page_table(memory: Bytes) -> bool:
    """Fault these pages in for writing ahead of their use; says whether the kernel could (Linux 5.14 or newer)."""
    while _madvise(memory.ctypes.data, memory.nbytes, POPULATE_WRITE):
        if ctypes.get_errno() != errno.EINTR:
            return False
    return True
