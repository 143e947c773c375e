"""An amount of which several may take, in any thread, and which only what is there already may exceed.

One may be part of another: what is taken of it is taken of both. So the regions of a server's links, the memory that it
keeps warm and the tensors that it holds stay within one sum, each also within its own.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kpu.sharing.regions import Region


def _nobody() -> None:
    pass


@dataclass(eq=False)
class Allowance:
    """`parts_limit` bounds in how many parts it may be taken: each region is a mapping, and a process may have 65530.

    Where that is bounded, what is taken at once is given back at once. `when_freed` is called after something was given
    back, in whatever thread.
    """

    limit: int
    within: "Allowance | None" = None
    parts_limit: int = sys.maxsize
    used: int = 0
    parts: int = 0
    when_freed: Callable[[], None] = _nobody
    _shown: Counter[Region] = field(default_factory=Counter[Region])
    # Of the kind that one thread may take twice: a collection that gives back can happen while it is held.
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        if self.within is not None:
            self._lock = self.within._lock

    def take(self, amount: int) -> bool:
        with self._lock:
            if self.parts >= self.parts_limit:
                return False
            if any(each.used + amount > each.limit for each in self._with_those_around()):
                return False
            self._count(amount)
            return True

    def take_anyway(self, amount: int) -> None:
        """For what is there already: nobody else is given anything until enough has come back."""
        with self._lock:
            self._count(amount)

    def give_back(self, amount: int) -> None:
        """One part of it."""
        with self._lock:
            self.parts -= 1
            for each in self._with_those_around():
                each.used -= amount
        for each in self._with_those_around():
            each.when_freed()

    def take_once(self, region: Region) -> bool:
        """Take for a region that several links may show. Its bytes are there once, and count once."""
        with self._lock:
            if region not in self._shown and not self.take(region.size):
                return False
            self._shown[region] += 1
            return True

    def give_back_once(self, region: Region) -> None:
        with self._lock:
            self._shown[region] -= 1
            if self._shown[region]:
                return
            del self._shown[region]
        self.give_back(region.size)

    def _count(self, amount: int) -> None:
        self.parts += 1
        for each in self._with_those_around():
            each.used += amount

    def _with_those_around(self) -> "Iterator[Allowance]":
        each: Allowance | None = self
        while each is not None:
            yield each
            each = each.within
