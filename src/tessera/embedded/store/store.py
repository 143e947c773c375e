"""The store: reads and writes in memory, made durable together at the end of each tick, and told afterwards.

What was written but not yet committed is a list of changes. Committed, it is what followers are told; if the commit
fails, the same list, backwards, takes it all out again.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import structlog

from tessera.embedded.documents import Frozen
from tessera.embedded.store.database import Database
from tessera.embedded.store.failures import failing_as_store
from tessera.embedded.store.feed import Feed
from tessera.embedded.store.following import Following
from tessera.embedded.store.locking import Lock
from tessera.embedded.store.objects import Objects
from tessera.embedded.store.opening import open_database, replay
from tessera.embedded.store.records import Change, Forgotten, Key, Record, Stale
from tessera.embedded.store.retention import RECENT, Ages, Retention
from tessera.errors import StoreFailed

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

TIDY_EVERY_S = 5.0
TIDY_PAUSE_S = 0.02
TIDY_STRIDE = 200
"""How many versions are forgotten before others get their turn."""


class Store:
    """Reads show what is written, durable or not. Whoever tells others what they read awaits `settled` first."""

    def __init__(
        self, lock: Lock, database: Database, objects: Objects, version: int, retention: Retention = RECENT
    ) -> None:
        self._given = version
        self._lock = lock
        self._database = database
        self._objects = objects
        self._feed = Feed(database, version)
        self._ages = Ages(retention)
        self._pending: list[Change] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._tidying: asyncio.TimerHandle | None = None

    @classmethod
    def open(cls, path: Path, retention: Retention = RECENT) -> Self:
        """Raises InvalidStore, StoreInUse or StoreFailed, each with one sentence."""
        with failing_as_store(path):
            lock = Lock(path)
        try:
            database = open_database(path)
            try:
                return cls(lock, database, *replay(path, database), retention)
            except BaseException:
                database.close()
                raise
        except BaseException:
            lock.release()
            raise

    @property
    def version(self) -> int:
        """That of the last write which stands. One whose commit failed does not, and its version is not given again."""
        return self._pending[-1].version if self._pending else self._feed.durable

    @property
    def oldest(self) -> int:
        """History is known from here on: this state can be listed, and followed from."""
        return self._database.oldest

    def get(self, key: Key) -> Record | None:
        return self._objects.get(key)

    def list(self, resource: str, namespace: str = "") -> Sequence[Record]:
        """By namespace and name; an empty namespace means all."""
        return self._objects.list(resource, namespace)

    def list_at(self, resource: str, namespace: str, version: int) -> Sequence[Record]:
        """As it was at a version that was given. Raises Forgotten."""
        if version < self.oldest:
            raise Forgotten(version, self.oldest)
        then: dict[Key, Record | None] = {}
        for change in self._database.changes(resource, version, self._feed.durable):
            then.setdefault(change.key, change.replaced)
        for change in self._pending:
            if change.key.resource == resource and change.version > version:
                then.setdefault(change.key, change.replaced)
        return _with_replaced(self.list(resource, namespace), then, namespace)

    def put(self, key: Key, document: Frozen, *, expected: int | None) -> Record:
        """Write the object at the next version, which is in the record's body. Raises Stale.

        `expected` is the version that the writer knows; None: there must be none.
        """
        replaced = self._current(key, expected)
        record = Record.of(replaced.key if replaced else key, self._given + 1, document)
        self._write(Change(record.version, replaced, record))
        return record

    def delete(self, key: Key, *, expected: int) -> Record:
        """The last state, at the version of its deletion. Raises Stale."""
        change = Change(self._given + 1, self._current(key, expected), None)
        self._write(change)
        assert change.last is not None, "what has a version is there"
        return change.last

    def follow(self, resource: str, namespace: str = "", *, since: int) -> Following:
        """All changes after a version. Raises Forgotten, now or when the follower falls behind history."""
        return Following(self._feed, resource, namespace, since)

    def settled(self) -> asyncio.Future[None]:
        """Await it until everything written so far is durable. Raises StoreFailed if it was taken out again.

        A writer asks before awaiting anything else: it speaks for the writes of this tick.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._pending:
            self._waiters.append(waiter)
        else:
            waiter.set_result(None)
        return waiter

    def forget(self, before: int) -> None:
        """At once, and as far as it is durable. The state at `before` and what happened since stay known."""
        before = min(before, self._feed.durable)
        if before > self.oldest:
            self._database.forget(before)

    def close(self) -> None:
        """What is written is made durable first; raises StoreFailed if it cannot be, and is closed all the same."""
        if self._tidying:
            self._tidying.cancel()
        try:
            failure = self._flush() if self._pending else None
            self._feed.close()
            self._database.close()
        finally:
            self._lock.release()
        if failure:
            raise failure

    def _current(self, key: Key, expected: int | None) -> Record | None:
        current = self._objects.get(key)
        if expected != (current.version if current else None):
            raise Stale(key, expected, current)
        return current

    def _write(self, change: Change) -> None:
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._end_tick)
        self._pending.append(change)
        self._objects.restore(change.key, change.after)
        self._given = change.version

    def _end_tick(self) -> None:
        if self._pending:
            changes = len(self._pending)
            failure = self._flush()
            if self._tidying is None and not self._feed.is_closed:
                self._tidy()
            if failure:  # told last: a log on the same disk may fail as well
                log.error("changes not written", changes=changes, error=str(failure))

    def _flush(self) -> StoreFailed | None:
        """Commit what is pending, or take it out again; then tell whoever waits."""
        failure: StoreFailed | None = None
        changes, self._pending = self._pending, []
        waiters, self._waiters = self._waiters, []
        try:
            self._database.append(changes)
        except Exception as error:  # of any kind: memory must stay as the file is, and nobody may wait for ever
            failure = error if isinstance(error, StoreFailed) else _unexpected(error)
            for change in reversed(changes):
                self._objects.restore(change.key, change.replaced)
        else:
            self._feed.publish(changes)
        for waiter in waiters:
            _answer(waiter, failure)
        return failure

    def _tidy(self) -> None:
        """Forget what is too old, a little at a time, and come back as long as there is something to forget."""
        loop = asyncio.get_running_loop()
        boundary = self._ages.boundary(loop.time(), self._feed.durable)
        try:
            self.forget(min(boundary, self.oldest + TIDY_STRIDE))
        except StoreFailed as error:
            log.warning("history not tidied", error=str(error))
            boundary = self.oldest
        if self.oldest < self._feed.durable:
            pause_s = TIDY_PAUSE_S if self.oldest < boundary else TIDY_EVERY_S
            self._tidying = loop.call_later(pause_s, self._tidy)
        else:
            self._tidying = None


def _unexpected(error: Exception) -> StoreFailed:
    failure = StoreFailed(f"changes cannot be written: {error}; nothing of them was kept, write them again")
    failure.__cause__ = error
    return failure


def _answer(waiter: asyncio.Future[None], failure: StoreFailed | None) -> None:
    if waiter.done():
        return  # whoever waited was cancelled
    if failure:
        waiter.set_exception(StoreFailed(str(failure)))
    else:
        waiter.set_result(None)


def _with_replaced(records: Sequence[Record], then: dict[Key, Record | None], namespace: str) -> Sequence[Record]:
    """The records with each key in `then` as it says."""
    kept = [record for record in records if record.key not in then]
    back = [record for record in then.values() if record and namespace in ("", record.key.namespace)]
    return sorted(kept + back, key=lambda record: record.key)
