"""A queue of keys to look at: what is marked twice is looked at once, and no key is in two hands.

A key that is marked while it is in hand is handed out again afterwards, so that no change is missed. `KeyQueue` is the
bookkeeping, without a clock; `WorkQueue` lets tasks wait for it and lets keys come later.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class KeyQueue(Generic[K]):
    """First marked, first taken."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[K, None] = OrderedDict()
        self._in_hand: set[K] = set()
        self._marked_in_hand: dict[K, None] = {}

    def __len__(self) -> int:
        """How many keys are to be looked at, those to be looked at again included."""
        return len(self._waiting) + len(self._marked_in_hand)

    @property
    def in_hand(self) -> int:
        return len(self._in_hand)

    def mark(self, key: K) -> None:
        if key in self._in_hand:
            self._marked_in_hand[key] = None
        else:
            self._waiting.setdefault(key)

    def take(self) -> K | None:
        """The key that has waited longest, now in the caller's hand until it is put down."""
        if not self._waiting:
            return None
        key, _ = self._waiting.popitem(last=False)
        self._in_hand.add(key)
        return key

    def put_down(self, key: K) -> None:
        self._in_hand.remove(key)
        if key in self._marked_in_hand:
            del self._marked_in_hand[key]
            self._waiting[key] = None


class WorkQueue(Generic[K]):
    """Lives in one event loop. Once closed it hands out nothing more."""

    def __init__(self) -> None:
        self._keys: KeyQueue[K] = KeyQueue()
        self._later: dict[K, asyncio.TimerHandle] = {}
        self._stirred = asyncio.Event()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def in_hand(self) -> int:
        return self._keys.in_hand

    @property
    def delayed(self) -> int:
        return len(self._later)

    def mark(self, key: K) -> None:
        self._keys.mark(key)
        self._stirred.set()

    def mark_later(self, key: K, delay_s: float) -> None:
        """Mark the key in a while. If it is to be marked sooner already, that stands."""
        loop = asyncio.get_running_loop()
        due_s = loop.time() + delay_s
        planned = self._later.get(key)
        if planned is not None:
            if planned.when() <= due_s:
                return
            planned.cancel()
        if not self._is_closed:
            self._later[key] = loop.call_at(due_s, self._mark_due, key)

    async def take(self) -> K | None:
        """Wait for a key; None, once the queue is closed."""
        while not self._is_closed:
            key = self._keys.take()
            if key is not None:
                return key
            self._stirred.clear()
            await self._stirred.wait()
        return None

    def put_down(self, key: K) -> None:
        self._keys.put_down(key)
        self._stirred.set()

    def close(self) -> None:
        self._is_closed = True
        self._stirred.set()
        for planned in self._later.values():
            planned.cancel()
        self._later.clear()

    def _mark_due(self, key: K) -> None:
        del self._later[key]
        self.mark(key)
