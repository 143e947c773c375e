"""Loads that need the driver alone: small programs, quick to start, and alike on a card and on the simulated driver.

All of them are made of one kernel that is not bound by power, so that throughput is GPU time.
"""

import mmap
import threading
import time
from ctypes import addressof, byref, c_char, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from .driver import Driver, Launch

STEPS = 250_000
"""Of the chain: about 0.56 ms on an H200."""
MIXED_STEPS = (2_000, 250_000, 8_000, 50_000, 1_500, 1_000_000, 20_000, 4_000_000, 4_000, 120_000)
"""From 4 microseconds to 9 milliseconds."""
COPY_BYTES = 32 << 20
DEVICE_MAPPED = 2
PATIENCE_NS = 2_000_000_000


@dataclass(frozen=True)
class Submitted:
    units: float
    stream: c_void_p | None


class Fma:
    """One kernel after the other, on as many multiprocessors as there are."""

    depth = 3

    def __init__(self, driver: Driver) -> None:
        self._stream = driver.stream()
        self._launch = chain(driver, STEPS, driver.multiprocessors(), self._stream)

    def submit(self) -> Submitted:
        self._launch.submit()
        return Submitted(1, self._stream)


class Mixed:
    """Kernels that differ a thousandfold in length."""

    depth = 6

    def __init__(self, driver: Driver) -> None:
        self._stream = driver.stream()
        blocks = driver.multiprocessors()
        self._turns = cycle([(steps, chain(driver, steps, blocks, self._stream)) for steps in MIXED_STEPS])

    def submit(self) -> Submitted:
        steps, launch = next(self._turns)
        launch.submit()
        return Submitted(steps / STEPS, self._stream)


class Streams:
    """Two streams whose kernels run side by side, each on half of the multiprocessors."""

    depth = 6

    def __init__(self, driver: Driver) -> None:
        half = driver.multiprocessors() // 2
        streams = driver.stream(), driver.stream()
        self._turns = cycle([(stream, chain(driver, STEPS, half, stream)) for stream in streams])

    def submit(self) -> Submitted:
        stream, launch = next(self._turns)
        launch.submit()
        return Submitted(0.5, stream)


class Copies(Fma):
    """Kernels while two threads copy to the card and from it, as fast as the bus lets them."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._pumps = [Pump(driver, "cuMemcpyHtoDAsync_v2"), Pump(driver, "cuMemcpyDtoHAsync_v2")]
        for pump in self._pumps:
            pump.start()

    def copied_bytes(self) -> tuple[int, int]:
        to_card, from_card = self._pumps
        return to_card.copied_bytes, from_card.copied_bytes


class Pump(threading.Thread):
    def __init__(self, driver: Driver, entry: str) -> None:
        super().__init__(daemon=True)
        self.copied_bytes = 0
        self._driver, self._stream = driver, driver.stream()
        card, host = driver.allocate(COPY_BYTES), driver.pinned(COPY_BYTES)
        ends = (card, host) if "HtoD" in entry else (host, card)
        self._copy = (entry, *ends, c_size_t(COPY_BYTES), self._stream)

    def run(self) -> None:
        self._driver.enter()
        while True:
            self._driver.call(*self._copy)
            self._driver.call("cuStreamSynchronize", self._stream)
            self.copied_bytes += COPY_BYTES


class Ranks:
    """One of two processes whose kernels wait for each other, as those of a collective do."""

    def __init__(self, driver: Driver, meeting_place: Path, rank: int) -> None:
        self._driver, self._stream = driver, driver.stream()
        self._words, flags = shared_words(driver, meeting_place)
        self._mine = 64 * rank
        arguments = [c_uint64(0), c_uint64(flags + self._mine), c_uint64(flags + 64 * (1 - rank))]
        self._turn = c_uint(0)
        function = driver.kernel(driver.kernels(), "spin_meet")
        self._launch = Launch(driver, function, [*arguments, self._turn, c_uint64(PATIENCE_NS)], 1, self._stream)

    def meet(self, times: int) -> dict[str, float]:
        """Ends early when the other rank did not come, which is what must never happen."""
        began = time.monotonic()
        met = 0
        while met < times and not self._gave_up():
            self._turn.value += 1
            self._launch.submit()
            self._driver.call("cuStreamSynchronize", self._stream)
            met += not self._gave_up()
        return {"met": met, "seconds": time.monotonic() - began}

    def _gave_up(self) -> bool:
        return self._words[self._mine + 4] != 0


def chain(driver: Driver, steps: int, blocks: int, stream: c_void_p) -> Launch:
    function = driver.kernel(driver.kernels(), "spin_fma")
    return Launch(driver, function, [c_uint64(steps), driver.allocate(4)], blocks, stream)


def shared_words(driver: Driver, path: Path) -> tuple[mmap.mmap, int]:
    """Host memory that two processes and their kernels see; returns it and where the card finds it."""
    with path.open("r+b") as file:
        words = mmap.mmap(file.fileno(), mmap.PAGESIZE)
    host = addressof(c_char.from_buffer(words))
    driver.call("cuMemHostRegister_v2", c_void_p(host), c_size_t(mmap.PAGESIZE), DEVICE_MAPPED)
    device = c_uint64()
    driver.call("cuMemHostGetDevicePointer_v2", byref(device), c_void_p(host), 0)
    return words, device.value


LOADS = {"fma": Fma, "mixed": Mixed, "streams": Streams, "copies": Copies}
