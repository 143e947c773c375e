"""Regions: memory that can be handed to another process of this host, and the checks on one that comes from there.

A region is a memfd, sized once and sealed. The seal against shrinking is what makes it safe to map a stranger's file:
without it the other side could cut the file short, and our next read would end the process by SIGBUS.
"""

import errno
import fcntl
import functools
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kpu.sharing.mappings import Bytes, fill_page_table, map_shared

STEPS = 8
PAGE = os.sysconf("SC_PAGE_SIZE")
WRITE_STEP = 64 << 20


Write = Callable[[Bytes], None]


class BadRegion(Exception):
    """What came from the other side is no region that is safe to map."""


@dataclass(eq=False)
class Region:
    """Memory of ours that others may map: how many bytes of it were ever written, how many our page table holds."""

    fd: int
    memory: Bytes
    written: int = 0
    paged: int = 0

    @property
    def size(self) -> int:
        return self.memory.nbytes

    def close_file(self) -> None:
        """Give the descriptor back; the memory stays for as long as someone maps it."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close_file()


def round_up(nbytes: int) -> int:
    """Sizes go in whole pages and in steps of an eighth, so that a region fits the next tensor of about its size."""
    step = max(PAGE, 1 << max(0, nbytes.bit_length() - 1) >> STEPS.bit_length() - 1)
    return -(-max(nbytes, 1) // step) * step


def make_region(nbytes: int) -> Region:
    """A new region with room for these bytes, its memory not yet touched. Raises OSError where memfds do not work."""
    if not hasattr(os, "memfd_create"):
        raise OSError(errno.ENOSYS, "this system has no memfds")
    size = round_up(nbytes)
    fd = os.memfd_create("kpu-tensor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return Region(fd, map_shared(fd, size))
    except OSError:
        os.close(fd)
        raise


def fill(region: Region, data: Bytes) -> None:
    """Copy bytes to the start of a region. Memory never touched before is written by the kernel itself.

    A page that is written through the file is not zeroed first and takes no page fault: half the time of a plain copy.
    So does asking for all pages at once where a copy would fault on each.
    """
    if region.written or region.fd < 0:
        page_in(region, data.nbytes)
        np.copyto(region.memory[: data.nbytes], data)
        region.paged = region.written = max(region.written, data.nbytes)
        return
    view, at = data.data, 0
    while at < data.nbytes:
        at += os.pwrite(region.fd, view[at : at + WRITE_STEP], at)
    region.written = data.nbytes


def have_filled(region: Region, nbytes: int, write: Write) -> None:
    """Have bytes written to the start of a region by somebody else, such as a device."""
    write(region.memory[:nbytes])
    region.paged = region.written = max(region.written, nbytes)


def page_in(region: Region, nbytes: int) -> bool:
    """Prepare the next piece of a region that was written through its file; says whether there is more to do."""
    piece = region.memory[region.paged : min(region.written, region.paged + nbytes)]
    region.paged = region.paged + piece.nbytes if piece.nbytes and fill_page_table(piece) else region.written
    return region.paged < region.written


def map_offered(fd: int, size: int) -> Bytes:
    """Map what another process offers, once it is proven that nothing it does can take the memory away from us."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_dev != _memfd_device():
        raise BadRegion("the file offered is no memfd, expected one made by memfd_create")
    if not fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
        raise BadRegion("the memfd offered is not sealed against shrinking, expected F_SEAL_SHRINK")
    if size <= 0 or status.st_size < size:
        raise BadRegion(f"the memfd offered has {status.st_size} bytes, expected at least the {size} that were told")
    return map_shared(fd, size)


@functools.cache
def _memfd_device() -> int:
    """All memfds of a kernel lie on one internal device; huge pages and files of other kinds do not."""
    fd = os.memfd_create("kpu-probe", os.MFD_CLOEXEC)
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)
