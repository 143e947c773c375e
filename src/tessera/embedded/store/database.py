"""The SQLite file: a log with a row for each version that is still known.

A row says which version it replaced; one without a body is a deletion. What no later row replaces is what there is now.
Forgetting the past up to a version removes the rows that were replaced by then, and the deletions. Versions grow
along the log, so everything is found by the one key the table has, and no index can contradict it.
"""

import sqlite3
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tessera.embedded.store.failures import failing_as_store
from tessera.embedded.store.records import Change, Key, Record

_APPEND = """
INSERT INTO log (version, resource, namespace, name, replaced, body, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_ROWS = "SELECT version, resource, namespace, name, replaced, body, checksum FROM log ORDER BY version"
_CHANGES = """
SELECT log.version, log.namespace, log.name, log.body, log.replaced, old.body
FROM log LEFT JOIN log AS old ON old.version = log.replaced
WHERE log.version > :after AND log.version <= :until AND log.resource = :resource
ORDER BY log.version
"""
_FORGET_REPLACED = """
DELETE FROM log WHERE version IN (SELECT replaced FROM log WHERE version > :oldest AND version <= :before)
"""
_FORGET_DELETIONS = "DELETE FROM log WHERE version > :oldest AND version <= :before AND body IS NULL"


class Row(NamedTuple):
    """`checksum` is over all else: SQLite would hand out a body with a bit turned."""

    version: int
    resource: str
    namespace: str
    name: str
    replaced: int | None
    body: bytes | None
    checksum: int

    @classmethod
    def of(cls, change: Change) -> "Row":
        replaced = change.replaced.version if change.replaced else None
        body = change.after.body if change.after else None
        return cls(change.version, *change.key, replaced, body, _checksum(change.version, change.key, replaced, body))

    def is_whole(self) -> bool:
        return self.checksum == _checksum(self.version, self.key, self.replaced, self.body)

    @property
    def key(self) -> Key:
        return Key(self.resource, self.namespace, self.name)


class Database:
    """Every method is a transaction of its own; one that raises StoreFailed has changed nothing."""

    def __init__(self, path: Path, connection: sqlite3.Connection, oldest: int) -> None:
        self.oldest = oldest
        self._path = path
        self._connection = connection

    def rows(self) -> Iterator[Row]:
        """All of it, in the order of versions."""
        yield from map(Row._make, self._connection.execute(_ROWS))

    def append(self, changes: Sequence[Change]) -> None:
        """Durable when this returns."""
        with self._transaction() as sql:
            sql.executemany(_APPEND, map(Row.of, changes))

    def changes(self, resource: str, after: int, until: int) -> Iterator[Change]:
        """Those of one resource with `after` < version <= `until`, in order. `after` must not be before `oldest`."""
        with failing_as_store(self._path):
            found = self._connection.execute(_CHANGES, {"resource": resource, "after": after, "until": until})
            for version, namespace, name, body, replaced, replaced_body in found:
                key = Key(resource, namespace, name)
                old = Record(key, replaced, replaced_body) if replaced is not None else None
                yield Change(version, old, Record(key, version, body) if body is not None else None)

    def forget(self, before: int) -> None:
        """The state at `before` and what happened since stay known."""
        with self._transaction() as sql:
            span = {"oldest": self.oldest, "before": before}
            sql.execute(_FORGET_REPLACED, span)
            sql.execute(_FORGET_DELETIONS, span)
            sql.execute("UPDATE known SET oldest = ?, checksum = ?", (before, oldest_checksum(before)))
        self.oldest = before

    def close(self) -> None:
        with failing_as_store(self._path):
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        with failing_as_store(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def oldest_checksum(oldest: int) -> int:
    return zlib.crc32(f"{oldest}".encode())


def _checksum(version: int, key: Key, replaced: int | None, body: bytes | None) -> int:
    return zlib.crc32(body or b"", zlib.crc32(f"{version} {replaced} {'/'.join(key)}".encode()))
