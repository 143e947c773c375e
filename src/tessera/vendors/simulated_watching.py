"""What simulated cards do: how much of them is in use, by whom, and what befell them.

All of it lies in the files of `native/sim`, whose layouts are known here too (`machine.c`, `card_time.c`). Several
nodes of one process have a directory each, so their driver's own NVML, which knows one machine, cannot be asked.
"""

import asyncio
import os
import struct
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tessera.file_locks import is_locked, lock_holder
from tessera.vendors.usage import CardProcess, CardUsage, Fault

MOST_PROCESSES = 1024
SLOTS = np.dtype([("pid", "<i4"), ("padding", "<i4"), ("bytes", "<u8", (64,))])
"""Of the file `memory`, one for each process."""
FIRST_SLOT_LOCK = 1
CARD_TIME = struct.Struct("=16x2Q128s512s")
"""Of the file `time`, up to the shares of processes: until when everything is worked out, who has work, and windows."""
WINDOW = np.dtype([("number", "<i8"), ("busy_ns", "<i8")])
SHARE = struct.Struct("=2Q")
SHARE_SIZE = 3608
CARD_TIME_SIZE = CARD_TIME.size + MOST_PROCESSES * SHARE_SIZE
WINDOW_NS = 50_000_000
RATE_WINDOWS = 4
"""How busy a card is, is told of the last 200 ms, as the simulated NVML does."""
LOOK_AGAIN_S = 0.2
LONGEST_READ = 1 << 16
MIB = 1 << 20


class Tenant(NamedTuple):
    """A process on a card, by its number here."""

    pid: int
    card: int
    memory_bytes: int


class SimulatedWatch:
    """Of the cards in `directory`; none, as long as there is no such directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._told: int | None = None

    def usage(self) -> dict[str, CardUsage]:
        tenants = self._tenants()
        return {
            uuid: CardUsage(
                memory_used_mib=sum(one.memory_bytes for one in tenants if one.card == card) // MIB,
                busy_percent=self._busy_percent(card),
            )
            for card, uuid in enumerate(self._uuids())
        }

    def processes(self) -> dict[str, tuple[CardProcess, ...]]:
        """Those that have memory of a card, by its UUID."""
        tenants = self._tenants()
        return {
            uuid: tuple(CardProcess(one.pid, one.memory_bytes) for one in tenants if one.card == card)
            for card, uuid in enumerate(self._uuids())
        }

    async def upcoming_faults(self) -> list[Fault]:
        """What was told before we looked for the first time is nobody's news."""
        path = self._directory / "faults"
        with suppress(FileNotFoundError):
            if self._told is None:
                self._told = path.stat().st_size
            await asyncio.sleep(LOOK_AGAIN_S)
            if path.stat().st_size > self._told:
                return list(self._read_faults(path))
            return []
        self._told = 0
        await asyncio.sleep(LOOK_AGAIN_S)
        return []

    def _read_faults(self, path: Path) -> Iterator[Fault]:
        """Up to the last whole line; a line that is none is passed over."""
        assert self._told is not None
        with _opened(path) as descriptor:
            text = os.pread(descriptor, LONGEST_READ, self._told)
        whole = text[: text.rfind(b"\n") + 1]
        self._told += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            match line.split():
                case [uuid, number] if number.isdecimal():
                    yield Fault(uuid, int(number))
                case _:
                    pass

    def _uuids(self) -> list[str]:
        with suppress(FileNotFoundError):
            lines = (self._directory / "cards").read_text().splitlines()
            return [line.partition("\t")[0] for line in lines]
        return []

    def _tenants(self) -> list[Tenant]:
        """Of all cards; who is dead has given back what it had."""
        with suppress(FileNotFoundError), _opened(self._directory / "memory") as memory:
            content = os.pread(memory, MOST_PROCESSES * SLOTS.itemsize, 0)
            slots = np.frombuffer(content[: len(content) // SLOTS.itemsize * SLOTS.itemsize], SLOTS)
            living = [int(slot) for slot in slots["pid"].nonzero()[0] if is_locked(memory, FIRST_SLOT_LOCK + int(slot))]
            numbers = self._numbers(living)
            return [
                Tenant(numbers.get(slot) or int(slots["pid"][slot]), int(card), int(slots["bytes"][slot, card]))
                for slot in living
                for card in slots["bytes"][slot].nonzero()[0]
            ]
        return []

    def _numbers(self, slots: list[int]) -> dict[int, int]:
        """Of whoever has these slots, as we number processes; 0 for one that closed all it had open."""
        with suppress(FileNotFoundError), _opened(self._directory / "processes") as processes:
            return {slot: lock_holder(processes, slot) for slot in slots}
        return {}

    def _busy_percent(self, card: int) -> int:
        """Of the last windows that are over. What nobody has worked out yet is work, for as long as there is some."""
        now_ns = time.monotonic_ns()
        with suppress(FileNotFoundError), _opened(self._directory / "time") as times:
            start = card * CARD_TIME_SIZE
            head = os.pread(times, CARD_TIME.size, start)
            if len(head) < CARD_TIME.size:
                return 0
            settled_ns, _, waiting, windows = CARD_TIME.unpack(head)
            end_ns = now_ns // WINDOW_NS * WINDOW_NS
            begin_ns = end_ns - RATE_WINDOWS * WINDOW_NS
            known = np.frombuffer(windows, WINDOW)
            recent = (known["number"] >= begin_ns // WINDOW_NS) & (known["number"] < end_ns // WINDOW_NS)
            rest_ns = sum(_rest_ns(times, start, slot) for slot in _slots_in(waiting))
            owed_ns = min(settled_ns + rest_ns, end_ns) - max(settled_ns, begin_ns)
            busy_ns = int(known["busy_ns"][recent].sum()) + max(0, owed_ns)
            return min(100, 100 * busy_ns // (RATE_WINDOWS * WINDOW_NS))
        return 0


@contextmanager
def _opened(path: Path) -> Generator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _slots_in(waiting: bytes) -> Iterator[int]:
    bits = np.unpackbits(np.frombuffer(waiting, np.uint8), bitorder="little")
    return map(int, bits.nonzero()[0])


def _rest_ns(times: int, start: int, slot: int) -> int:
    share = os.pread(times, SHARE.size, start + CARD_TIME.size + slot * SHARE_SIZE)
    asked, done = SHARE.unpack(share) if len(share) == SHARE.size else (0, 0)
    return max(0, asked - done)
