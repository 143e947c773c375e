"""The region of a container: what its processes tell each other, read by the agent and never trusted.

The layout is that of `native/lib/region_file.h`. Whoever is in the container may write anything into the file, so only
its own figures can be wrong by that. A process has a slot while it holds the lock on the slot's byte, which the kernel
lets go of at any death; slots of the dead are passed over.
"""

import os
import shutil
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tessera.errors import InvalidRegion
from tessera.file_locks import is_locked
from tessera.files import opened_with_care

MAGIC, VERSION = 0x41524553, 3
MOST_CARDS, MOST_SLOTS = 32, 1024
HEAD = struct.Struct("=III52x")
CARD = struct.Struct("=48s8Q16x")
SLOT = struct.Struct("=QQ48x" + MOST_CARDS * "Q8x")
FIRST_SLOT = HEAD.size + MOST_CARDS * CARD.size
SIZE = FIRST_SLOT + MOST_SLOTS * SLOT.size
FIRST_SLOT_LOCK = 1
MOST = 2**63 - 1
"""Of any figure, whatever is written there: others who are told of it count no further."""


class RegionCard(msgspec.Struct, frozen=True, kw_only=True):
    """One card as the container uses it. A limit of 0 is none; counters grow for as long as there is the file.

    `launched_ms` is when it was last used, by the machine's monotonic clock; 0 for never.
    """

    uuid: str
    used_bytes: int
    context_bytes: int
    limit_bytes: int
    share_percent: int
    gpu_ns: int
    throttled_ns: int
    refusals: int
    launched_ms: int


class RegionProcess(msgspec.Struct, frozen=True):
    """`pid` is its number in the container, `host_pid` the one on the node; 0 where it was not told."""

    pid: int
    host_pid: int


class Region(msgspec.Struct, frozen=True):
    cards: tuple[RegionCard, ...] = ()
    processes: tuple[RegionProcess, ...] = ()


def read_region(path: Path) -> Region | None:
    """None where no process has used a card yet."""
    try:
        with opened_with_care(path) as descriptor:
            return _read(descriptor, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidRegion(f"{path} cannot be read ({error.strerror}), expected the region of a container") from error


def discard_region(path: Path) -> None:
    """A container that starts begins anew, whatever it left there, unless a process of it still lives."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(kind):
        shutil.rmtree(path)
    elif not stat.S_ISREG(kind) or not _is_in_use(path):
        path.unlink(missing_ok=True)


def _is_in_use(path: Path) -> bool:
    with opened_with_care(path) as descriptor:
        return is_locked(descriptor, 0, 0)


def _read(descriptor: int, path: Path) -> Region | None:
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_size == 0:
        return None
    head = os.pread(descriptor, FIRST_SLOT, 0)
    magic, version, slots_used = HEAD.unpack_from(head) if len(head) == FIRST_SLOT else (-1, -1, 0)
    if magic == 0 and found.st_size == SIZE:
        return None
    if (magic, version, found.st_size) != (MAGIC, VERSION, SIZE):
        raise InvalidRegion(f"{path} is no region of version {VERSION}; restart its container, which begins a new one")
    slots = list(_living_slots(descriptor, min(slots_used, MOST_SLOTS)))
    used = [sum(slot[2 + card] for slot in slots) for card in range(MOST_CARDS)]
    return Region(tuple(_read_cards(head, used)), tuple(RegionProcess(slot[0], slot[1]) for slot in slots))


def _living_slots(descriptor: int, count: int) -> Iterator[tuple[int, ...]]:
    content = os.pread(descriptor, count * SLOT.size, FIRST_SLOT)
    for number, slot in enumerate(SLOT.iter_unpack(content[: len(content) // SLOT.size * SLOT.size])):
        if slot[0] and is_locked(descriptor, FIRST_SLOT_LOCK + number):
            yield slot


def _read_cards(head: bytes, used: list[int]) -> Iterator[RegionCard]:
    for number, (name, *figures) in enumerate(CARD.iter_unpack(head[HEAD.size :])):
        uuid = name.partition(b"\0")[0].decode(errors="replace")
        if not uuid:
            return
        context, limit, share, gpu, throttled, refusals, launched, unclaimed = (min(one, MOST) for one in figures)
        yield RegionCard(
            uuid=uuid,
            used_bytes=min(used[number] + unclaimed, MOST) if used[number] else 0,
            context_bytes=context,
            limit_bytes=limit,
            share_percent=min(share, 100),
            gpu_ns=gpu,
            throttled_ns=throttled,
            refusals=refusals,
            launched_ms=launched,
        )
