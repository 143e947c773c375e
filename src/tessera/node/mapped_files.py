"""Which files a process has mapped: the kernel's word, which nobody in a container can forge."""

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

PROC = Path("/proc")


class Mapping(NamedTuple):
    begin: int
    end: int
    file: str
    """Device and inode, as the kernel writes them."""


def has_mapped(pid: int, path: Path, proc: Path = PROC) -> bool | None:
    """None where either cannot be seen: the process is gone or not ours to look at, or there is no such file."""
    wanted = name_of_file(path)
    try:
        return None if wanted is None else any(one.file == wanted for one in _mappings(proc / str(pid)))
    except OSError:
        return None


def name_of_file(path: Path) -> str | None:
    """As it is in lists of mappings. Found by mapping it: on some disks `stat` tells another device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        with mmap.mmap(descriptor, 1, prot=mmap.PROT_READ) as own:
            address: int = np.frombuffer(own, np.uint8).ctypes.data
            return next((one.file for one in _mappings(PROC / "self") if one.begin <= address < one.end), None)
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)


def _mappings(process: Path) -> Iterator[Mapping]:
    for line in (process / "maps").read_text(errors="replace").splitlines():
        span, _, _, device, inode, *_ = line.split(maxsplit=5)
        begin, _, end = span.partition("-")
        yield Mapping(int(begin, 16), int(end, 16), f"{device} {inode}")
