"""Durable changes in order, for any number of followers, from as far back as history goes.

The last few changes of each resource that is followed are kept in memory, once for all. Whoever is further behind reads
them from the file, some versions at a time. So a slow follower costs nothing while it is slow, and is cut off only when
history has moved on without it.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from tessera.embedded.store.database import Database
from tessera.embedded.store.records import Change, Forgotten

WINDOW = 256
STRIDE = 500
"""How many versions are read from the file before others get their turn."""


class _Window:
    """All changes of one resource after `since`."""

    def __init__(self, since: int) -> None:
        self.since = since
        self.stirred = asyncio.Event()
        self._changes: deque[Change] = deque()

    def add(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > WINDOW:
            self.since = self._changes.popleft().version

    def after(self, version: int) -> Sequence[Change]:
        newer: list[Change] = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            newer.append(change)
        return newer[::-1]

    def stir(self) -> None:
        self.stirred.set()
        self.stirred.clear()


class Feed:
    def __init__(self, database: Database, durable: int) -> None:
        self.durable = durable
        self.is_closed = False
        self._database = database
        self._windows: dict[str, _Window] = {}

    def publish(self, changes: Iterable[Change]) -> None:
        """They are durable now, and newer than all before."""
        stirred: set[_Window] = set()
        for change in changes:
            window = self._windows.get(change.key.resource)
            if window:
                window.add(change)
                stirred.add(window)
            self.durable = change.version
        for window in stirred:
            window.stir()

    def read(self, resource: str, after: int) -> tuple[Sequence[Change], int]:
        """Changes after a version, and up to which version these are all. Raises Forgotten."""
        if after < self._database.oldest:
            raise Forgotten(after, self._database.oldest)
        window = self._window(resource)
        if after >= window.since:
            return window.after(after), max(after, self.durable)
        until = min(after + STRIDE, self.durable)
        return list(self._database.changes(resource, after, until)), until

    def reached(self, resource: str, after: int) -> int:
        """The version up to which a follower that has seen everything until `after` has missed nothing."""
        window = self._window(resource)
        is_quiet = after >= window.since and not window.after(after)
        return max(after, self.durable) if is_quiet else after

    async def stirred(self, resource: str) -> None:
        """Until something of this resource has changed, or nothing will any more."""
        if not self.is_closed:
            await self._window(resource).stirred.wait()

    def close(self) -> None:
        self.is_closed = True
        for window in self._windows.values():
            window.stir()

    def _window(self, resource: str) -> _Window:
        """Kept from the first time that somebody follows the resource."""
        if resource not in self._windows:
            self._windows[resource] = _Window(self.durable)
        return self._windows[resource]
