"""Which files a process has mapped: the kernel's word, which nobody in a container can forge.

A file is called by its device and inode, as the kernel writes them.
"""

import mmap
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tessera.files import opened_with_care

PROC = Path("/proc")


class _Mapping(NamedTuple):
    begin: int
    end: int
    file: str


def mapped_files(pid: int, proc: Path = PROC) -> frozenset[str] | None:
    """None of a process that cannot be seen: it is gone, about to go, or not ours to look at."""
    try:
        return frozenset(one.file for one in _mappings(proc / str(pid))) or None
    except OSError:
        return None


def names_of_files(paths: Iterable[Path]) -> dict[Path, str]:
    """As such lists have them; whatever cannot be mapped is left out.

    They are found by mapping the files ourselves, because `stat` tells of other devices on some disks.
    """
    with ExitStack() as stack:
        addresses: dict[Path, int] = {}
        for path in paths:
            with suppress(OSError, ValueError), opened_with_care(path) as descriptor:
                own = stack.enter_context(mmap.mmap(descriptor, 1, prot=mmap.PROT_READ))
                addresses[path] = np.frombuffer(own, np.uint8).ctypes.data
        mine = list(_mappings(PROC / "self")) if addresses else []
    return {path: one.file for path, address in addresses.items() for one in mine if one.begin <= address < one.end}


def _mappings(process: Path) -> Iterator[_Mapping]:
    """Names of files may hold anything but the end of a line."""
    for line in (process / "maps").read_bytes().split(b"\n"):
        if line:
            span, _, _, device, inode, *_ = line.split(maxsplit=5)
            begin, _, end = span.partition(b"-")
            yield _Mapping(int(begin, 16), int(end, 16), f"{device.decode()} {inode.decode()}")
