"""Something changed: whoever waits for it wakes, and looks for itself at what it was."""

import asyncio
from collections.abc import Callable


class News:
    def __init__(self) -> None:
        self._next = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def spread(self) -> None:
        told, self._next = self._next, asyncio.Event()
        told.set()
        for listener in self._listeners:
            listener()

    def upcoming(self) -> asyncio.Event:
        """Set at the next change. Take it before looking, so that no change falls between the look and the wait."""
        return self._next
