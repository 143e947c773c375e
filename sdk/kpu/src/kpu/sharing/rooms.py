"""Memory for large tensors, used again while it is warm.

Fresh pages cost more than the copy that fills them. So the memory of a tensor that is gone stays here for a while, for
the next one of its size. It comes back by itself when the last view of it is collected, in whatever thread that is.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from kpu.sharing.allowance import Allowance
from kpu.tensors import Description, make_room

SMALLEST_BYTES = 4 << 20
IDLE_SECONDS = 10.0

Bytes = NDArray[np.uint8]


def _leave_it() -> None:
    pass


@dataclass
class WarmRooms:
    """Rooms for tensors. Those that wait to be used again stay within an allowance.

    `when_idle` is called, in whatever thread, when one begins to wait: somebody should let it go after a while.
    """

    allowance: Allowance
    now: Callable[[], float] = monotonic
    when_idle: Callable[[], None] = _leave_it
    _idle: OrderedDict[int, tuple[Bytes, float]] = field(default_factory=OrderedDict[int, tuple[Bytes, float]])
    _numbers: "count[int]" = field(default_factory=count)
    # Of the kind that one thread may take twice: a collection can happen while it is held.
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def idle_bytes(self) -> int:
        return self.allowance.used

    def make(self, description: Description) -> Bytes:
        size = description.size_bytes
        if size < SMALLEST_BYTES or description.device != "cpu":
            return make_room(description)
        block = self._take(size)
        if block is None:
            block = make_room(description)
        # A view by way of the buffer, not of the array: further views then hold on to this one, and not to the block.
        room: Bytes = np.frombuffer(block.data, np.uint8)
        weakref.finalize(room, self._give_back, block).atexit = False
        return room

    def expire(self) -> None:
        """Let go of what nobody came for."""
        with self._lock:
            due = [number for number, (_, since) in self._idle.items() if self.now() - since >= IDLE_SECONDS]
            for number in due:
                self._drop(number)

    def clear(self) -> None:
        """Let go of all that waits."""
        with self._lock:
            for number in list(self._idle):
                self._drop(number)

    def _take(self, size: int) -> Bytes | None:
        with self._lock:
            number = next((number for number, (block, _) in self._idle.items() if block.nbytes == size), None)
            return None if number is None else self._drop(number)

    def _give_back(self, block: Bytes) -> None:
        with self._lock:
            while not self.allowance.take(block.nbytes):
                if not self._idle:
                    return
                self._drop(next(iter(self._idle)))
            self._idle[next(self._numbers)] = (block, self.now())
        self.when_idle()

    def _drop(self, number: int) -> Bytes:
        block, _ = self._idle.pop(number)
        self.allowance.give_back(block.nbytes)
        return block
