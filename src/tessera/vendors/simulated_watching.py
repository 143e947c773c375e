"""What simulated cards do: how much of them is in use, by whom, and what befell them.

All of it lies in the files of `native/sim`, whose layouts are known here too (`machine.c`, `card_time.c`). Several
nodes of one process have a directory each, so their driver's own NVML, which knows one machine, cannot be asked.
Containers may write there whatever they like, and spoil no more than what is told of simulated cards.
"""

import asyncio
import os
import re
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from tessera.errors import DiscoveryFailed
from tessera.file_locks import is_locked, lock_holder
from tessera.files import opened_with_care
from tessera.vendors.usage import CardProcess, CardUsage, Fault

T = TypeVar("T")
MOST_PROCESSES = 1024
MOST_BYTES_OF_CARDS = 1 << 16
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
LOOK_AGAIN_S = 0.5
MOST_BYTES_OF_FAULTS = 1 << 12
"""At each look: who writes more is heard later."""
MIB = 1 << 20
_FAULT = re.compile(rb"(\S{1,63})\s+([0-9]{1,9})\s*")


class Tenant(NamedTuple):
    """A process on a card, by its number here; 0 for one that has none here, or hides it."""

    pid: int
    card: int
    memory_bytes: int


class SimulatedWatch:
    """Of the cards in `directory`; none, as long as there is no such directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._told: int | None = None

    def usage(self) -> dict[str, CardUsage]:
        return self._asked(self._read_usage, {})

    def processes(self) -> dict[str, tuple[CardProcess, ...]]:
        """Those that have memory of a card, by its UUID."""
        return self._asked(self._read_processes, {})

    async def upcoming_faults(self) -> list[Fault]:
        """What was told before we looked for the first time is nobody's news."""
        if self._told is None:
            self._told = self._asked(lambda: (self._directory / "faults").stat().st_size, 0)
        await asyncio.sleep(LOOK_AGAIN_S)
        return self._asked(self._read_faults, [])

    def _asked(self, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except FileNotFoundError:
            return otherwise
        except (OSError, ValueError) as error:
            raise DiscoveryFailed(
                f"{self._directory} does not tell of its cards ({error}), expected the files of the simulated driver;"
                " remove what is in the way"
            ) from error

    def _read_usage(self) -> dict[str, CardUsage]:
        tenants = self._tenants()
        return {
            uuid: CardUsage(
                memory_used_mib=sum(one.memory_bytes for one in tenants if one.card == card) // MIB,
                busy_percent=self._busy_percent(card),
            )
            for card, uuid in enumerate(self._uuids())
        }

    def _read_processes(self) -> dict[str, tuple[CardProcess, ...]]:
        tenants = [one for one in self._tenants() if one.pid]
        return {
            uuid: tuple(CardProcess(one.pid, one.memory_bytes) for one in tenants if one.card == card)
            for card, uuid in enumerate(self._uuids())
        }

    def _read_faults(self) -> list[Fault]:
        """Up to the last whole line; lines that tell of no card of ours are passed over."""
        told = self._told or 0
        with opened_with_care(self._directory / "faults") as descriptor:
            size = os.fstat(descriptor).st_size
            told = told if told <= size else 0  # somebody began it anew
            text = os.pread(descriptor, MOST_BYTES_OF_FAULTS, told) if told < size else b""
        whole = text[: text.rfind(b"\n") + 1] or (text if len(text) == MOST_BYTES_OF_FAULTS else b"")
        self._told = told + len(whole)
        if not whole:
            return []
        found = (_FAULT.fullmatch(line) for line in whole.split(b"\n"))
        uuids = set(self._uuids())
        faults = (Fault(one[1].decode(errors="replace"), int(one[2])) for one in found if one)
        return [fault for fault in faults if fault.uuid in uuids]

    def _uuids(self) -> list[str]:
        with opened_with_care(self._directory / "cards") as descriptor:
            text = os.pread(descriptor, MOST_BYTES_OF_CARDS, 0).decode(errors="replace")
        return [line.partition("\t")[0] for line in text.splitlines()]

    def _tenants(self) -> list[Tenant]:
        """Of all cards. Who is dead has given back what it had."""
        with (
            opened_with_care(self._directory / "memory") as memory,
            opened_with_care(self._directory / "processes") as processes,
        ):
            content = os.pread(memory, MOST_PROCESSES * SLOTS.itemsize, 0)
            slots = np.frombuffer(content[: len(content) // SLOTS.itemsize * SLOTS.itemsize], SLOTS)
            return [
                Tenant(lock_holder(processes, slot), int(card), int(slots["bytes"][slot, card]))
                for slot in map(int, slots["pid"].nonzero()[0])
                if is_locked(memory, FIRST_SLOT_LOCK + slot)
                for card in slots["bytes"][slot].nonzero()[0]
            ]

    def _busy_percent(self, card: int) -> int:
        """Of the last windows that are over. What nobody has worked out yet is work, for as long as there is some."""
        now_ns = time.monotonic_ns()
        with (
            opened_with_care(self._directory / "memory") as memory,
            opened_with_care(self._directory / "time") as times,
        ):
            start = card * CARD_TIME_SIZE
            head = os.pread(times, CARD_TIME.size, start)
            if len(head) < CARD_TIME.size:
                return 0
            settled_ns, _, waiting, windows = CARD_TIME.unpack(head)
            living = (slot for slot in _slots_in(waiting) if is_locked(memory, FIRST_SLOT_LOCK + slot))
            rest_ns = sum(_rest_ns(times, start, slot) for slot in living)
        end_ns = now_ns // WINDOW_NS * WINDOW_NS
        begin_ns = end_ns - RATE_WINDOWS * WINDOW_NS
        known = np.frombuffer(windows, WINDOW)
        recent = (known["number"] >= begin_ns // WINDOW_NS) & (known["number"] < end_ns // WINDOW_NS)
        owed_ns = min(settled_ns + rest_ns, end_ns) - max(settled_ns, begin_ns)
        busy_ns = int(known["busy_ns"][recent].sum()) + max(0, owed_ns)
        return max(0, min(100, 100 * busy_ns // (RATE_WINDOWS * WINDOW_NS)))


def _slots_in(waiting: bytes) -> Iterator[int]:
    bits = np.unpackbits(np.frombuffer(waiting, np.uint8), bitorder="little")
    return map(int, bits.nonzero()[0])


def _rest_ns(times: int, start: int, slot: int) -> int:
    share = os.pread(times, SHARE.size, start + CARD_TIME.size + slot * SHARE_SIZE)
    asked, done = SHARE.unpack(share) if len(share) == SHARE.size else (0, 0)
    return max(0, asked - done)
