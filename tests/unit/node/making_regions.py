"""Regions as the library in containers writes them, and processes that hold a slot as the kernel knows it."""

import fcntl
import os
import struct
from pathlib import Path

from tessera.node import regions

MIB = 2**20


def write_region(
    path: Path, *slots: tuple[int, int, int], uuid: str = "GPU-0", unclaimed_bytes: int = 0, **figures: int
) -> None:
    """Slots are (pid, host pid, bytes of the card); figures are those of the card, by the names of RegionCard."""
    names = ("context_bytes", "limit_bytes", "share_percent", "gpu_ns", "throttled_ns", "refusals", "launched_ms")
    card = regions.CARD.pack(uuid.encode(), *(figures.get(name, 0) for name in names), unclaimed_bytes)
    head = regions.HEAD.pack(regions.MAGIC, regions.VERSION, len(slots))
    content = (head + card).ljust(regions.FIRST_SLOT, b"\0")
    content += b"".join(regions.SLOT.pack(pid, host, size, *[0] * 31) for pid, host, size in slots)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.ljust(regions.SIZE, b"\0"))


def live(path: Path, slot: int) -> int:
    """Hold a slot as a living process does; closing the descriptor is its death."""
    return hold_byte(path, regions.FIRST_SLOT_LOCK + slot)


def hold_byte(path: Path, byte: int) -> int:
    """Lock it, until the descriptor is closed."""
    descriptor = os.open(path, os.O_RDWR)
    lock = struct.pack("@hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
    return descriptor
