"""The one thread that serves the sockets of a process's end: a door and its links on a server, one link on a client.

Tensors are garbage-collected at any moment and in any thread, also in one that holds a lock of ours. So whoever has
news for the thread only leaves a note and rings the bell; it alone reads, writes and changes what stands in the books.
"""

import logging
import os
import selectors
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

log = logging.getLogger(__name__)

Result = TypeVar("Result")
LONGEST_NAP_S = 3600.0


class _Line:
    """A descriptor that is closed when nobody holds it any more, and so never while somebody writes to it."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def __del__(self) -> None:
        os.close(self.fd)


class Bell:
    """Wakes a thread. It takes no lock, and may be rung at any time, also when the thread has ended."""

    def __init__(self) -> None:
        self._line: _Line | None = _Line()

    def fileno(self) -> int:
        return self._line.fd if self._line else -1

    def ring(self) -> None:
        line = self._line
        if line:
            os.eventfd_write(line.fd, 1)

    def hush(self) -> None:
        if self._line:
            os.eventfd_read(self._line.fd)

    def cut(self) -> None:
        """Nobody listens any more."""
        self._line = None


class Party(Protocol):
    """One socket that the thread serves."""

    @property
    def open(self) -> bool: ...

    @property
    def waits_to_write(self) -> bool: ...

    def fileno(self) -> int: ...

    def read(self) -> None:
        """Something waits to be read."""
        ...

    def tend(self, now: float) -> float | None:
        """Do what is due; returns when to come again at the latest."""
        ...

    def shut(self, why: str) -> None:
        """Be open no longer. Any thread may say so."""
        ...

    def dispose(self) -> None:
        """Close the socket: only the thread that serves it may, so that its number is not another's meanwhile."""
        ...


class Exchange:
    def __init__(self, name: str) -> None:
        self.bell = Bell()
        self._parties: list[Party] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.bell, selectors.EVENT_READ)
        self._ending = False
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, party: Party) -> None:
        """Serve one more socket: before `start`, or from the thread itself."""
        self._selector.register(party.fileno(), selectors.EVENT_READ, party)
        self._parties.append(party)

    def end(self) -> None:
        """Have the thread shut all that it serves, and end."""
        self._ending = True
        self.bell.ring()

    def close(self) -> None:
        """End the thread, and wait for that."""
        self.end()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _serve(self) -> None:
        nap: float | None = 0.0
        while not self._ending:
            for key, events in self._selector.select(nap):
                if key.data is None:
                    self.bell.hush()
                elif events & selectors.EVENT_READ and key.data.open:
                    self._spare_the_others(key.data, key.data.read)
            nap = self._tend_all()
        self._selector.close()
        for party in self._parties:
            party.shut("this side is closing")
            party.dispose()
        self.bell.cut()

    def _tend_all(self) -> float:
        now = time.monotonic()
        next_turn = now + LONGEST_NAP_S
        for party in list(self._parties):
            due = self._spare_the_others(party, partial(party.tend, now)) if party.open else None
            if not party.open:
                self._dismiss(party)
                continue
            next_turn = min(next_turn, next_turn if due is None else due)
            writing = selectors.EVENT_WRITE if party.waits_to_write else 0
            self._selector.modify(party.fileno(), selectors.EVENT_READ | writing, party)
        return max(0.0, next_turn - time.monotonic())

    def _spare_the_others(self, party: Party, act: Callable[[], Result]) -> Result | None:
        """A mistake on one socket ends that one; the thread serves the others too."""
        try:
            return act()
        except Exception as error:
            log.exception("a connection for shared memory failed")
            party.shut(f"{type(error).__name__}: {error}")
            return None

    def _dismiss(self, party: Party) -> None:
        self._selector.unregister(party.fileno())
        self._parties.remove(party)
        party.dispose()
