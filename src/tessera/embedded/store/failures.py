"""What SQLite and the disk say when they cannot, as one sentence that tells what to do."""

import errno
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tessera.errors import InvalidStore, StoreFailed

_NOT_THE_CONTENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
"""What can go wrong with a file whatever is in it."""


@contextmanager
def failing_as_store(path: Path) -> Generator[None]:
    """While the file is in use: whatever the disk does not do is a StoreFailed."""
    try:
        yield
    except sqlite3.Error as error:
        if not hasattr(error, "sqlite_errorcode"):
            raise  # a misuse of the library, which is ours
        raise store_failed(path, error.sqlite_errorcode == sqlite3.SQLITE_FULL, str(error)) from error
    except OSError as error:
        raise store_failed(path, error.errno == errno.ENOSPC, error.strerror or str(error)) from error


@contextmanager
def failing_as_input(path: Path) -> Generator[None]:
    """While the file is being opened: what is in it may be anything, and is the user's to move away."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF  # none for a name that is not UTF-8
        if code in _NOT_THE_CONTENT:
            raise
        raise (not_ours(path) if code == sqlite3.SQLITE_NOTADB else damaged(path, str(error))) from error
    except UnicodeDecodeError as error:  # in what SQLite says about it
        raise damaged(path, "its tables are not described as they were") from error


def store_failed(path: Path, is_full: bool, why: str) -> StoreFailed:
    if is_full:
        return StoreFailed(f"{path}: no space left on its disk; free some and try again")
    return StoreFailed(f"{path}: cannot be read or written: {why}; check its disk and its permissions")


def not_ours(path: Path) -> InvalidStore:
    return InvalidStore(f"{path}: no state file of Tessera; move it away, or choose another state directory")


def damaged(path: Path, what: str) -> InvalidStore:
    told = " ".join(what.split())
    return InvalidStore(f"{path}: damaged: {told}; put a copy in its place, or move it away and begin anew")


def of_another_layout(path: Path, found: int, expected: int) -> InvalidStore:
    return InvalidStore(
        f"{path}: has layout {found}, expected {expected}; "
        f"use the version of Tessera that wrote it, or choose another state directory"
    )
