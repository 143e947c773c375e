"""A state file found and checked: ours, of our layout, and whole. A new one is made where there is none."""

import os
import sqlite3
from pathlib import Path

from tessera.embedded.store.database import Database, Row, oldest_checksum
from tessera.embedded.store.failures import (
    damaged,
    failing_as_input,
    failing_as_store,
    not_ours,
    of_another_layout,
)
from tessera.embedded.store.locking import OURS
from tessera.embedded.store.objects import Objects
from tessera.embedded.store.records import Record

LAYOUT = 1
APPLICATION = int.from_bytes(b"TESS")
"""What makes an SQLite file one of Tessera, in its header."""
FIRST_VERSION = 1
_TABLES = f"""
BEGIN IMMEDIATE;
CREATE TABLE log (
    version INTEGER PRIMARY KEY,
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    replaced INTEGER,
    body BLOB,
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE known (oldest INTEGER NOT NULL, checksum INTEGER NOT NULL) STRICT;
INSERT INTO known VALUES ({FIRST_VERSION}, {oldest_checksum(FIRST_VERSION)});
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {LAYOUT};
COMMIT;
"""


def open_database(path: Path) -> Database:
    """Whoever calls holds the lock."""
    with failing_as_store(path), failing_as_input(path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OURS))  # Secrets are in it
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            return _checked(path, connection)
        except BaseException:
            connection.close()
            raise


def replay(path: Path, database: Database) -> tuple[Objects, int]:
    """What there is now, and the last version that was given."""
    objects, version = Objects(), database.oldest
    with failing_as_store(path), failing_as_input(path):
        for row in database.rows():
            key = row.key
            _check_row(path, row, objects.get(key), database.oldest)
            objects.restore(key, Record(key, row.version, row.body) if row.body is not None else None)
            version = max(version, row.version)
    return objects, version


def _checked(path: Path, connection: sqlite3.Connection) -> Database:
    """Nothing is written to a file before it is known to be ours."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    if not _is_new(connection):
        _check_header(path, connection)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA journal_size_limit = 16777216")
    if _is_new(connection):
        connection.executescript(_TABLES)
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise damaged(path, found.splitlines()[-1])
    match connection.execute("SELECT oldest, checksum FROM known").fetchall():
        case [(oldest, checksum)] if checksum == oldest_checksum(oldest):
            return Database(path, connection, oldest)
        case _:
            raise damaged(path, "it does not say how far back it goes")


def _is_new(connection: sqlite3.Connection) -> bool:
    """Also where a first opening was cut short."""
    return _number(connection, "application_id") == 0 and _number(connection, "schema_version") == 0


def _check_header(path: Path, connection: sqlite3.Connection) -> None:
    if _number(connection, "application_id") != APPLICATION:
        raise not_ours(path)
    layout = _number(connection, "user_version")
    if layout != LAYOUT:
        raise of_another_layout(path, layout, LAYOUT)


def _check_row(path: Path, row: Row, current: Record | None, oldest: int) -> None:
    if not row.is_whole():
        raise damaged(path, f"version {row.version} is not as it was written")
    if row.version > oldest and row.replaced != (current.version if current else None):
        raise damaged(path, f"the version that {row.version} replaced is missing")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    (value,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    return value
