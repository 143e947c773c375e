"""What this process may use of the machine it runs on, and how its memory is kept from going back and forth."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 32 << 20


def memory_bytes() -> int:
    """The memory of the container where it has a limit, else that of the machine."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = (_number_in(file) for file in _limit_files())
    return min((machine, *(limit for limit in limits if limit)))


def keep_freed_memory() -> None:
    """Let the C library keep up to 32 MiB that were freed, instead of handing them back and forth to the kernel.

    A transfer frees and takes a message of about one MiB again and again. By default glibc gives such memory back each
    time, and the next message pays for fresh pages: that costs more than copying it. Other C libraries have no such
    setting and are left alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)


def _limit_files() -> Iterator[Path]:
    """Those of our control group and of every one around it: the smallest limit holds.

    A machine has control groups of the second kind, of the first, or both, and memory may be a matter of either. Within
    a container the first kind's path may be that of the host; then the group at the top is the container's own.
    """
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _up_from(_CGROUPS, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _up_from(_CGROUPS / "memory", path, "memory.limit_in_bytes")


def _up_from(top: Path, path: str, name: str) -> Iterator[Path]:
    own = top / path.lstrip("/")
    return (group / name for group in (own, *own.parents) if group.is_relative_to(top))


def _number_in(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
