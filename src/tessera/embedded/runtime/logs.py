"""Reading a container's log: which part of it, and on from there while it is written."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from datetime import datetime
from io import BufferedReader
from pathlib import Path

import msgspec

from tessera.embedded.runtime.log_files import OLDER, PART, stamp

BLOCK = 64 * 1024
LOOK_AGAIN_S = 0.05


class LogRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`since` in time, `tail_lines` from the end, `limit_bytes` of what is left, with `timestamps`."""

    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: datetime | None = None
    timestamps: bool = False


async def read_log(path: Path, request: LogRequest, ended: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    """The log in pieces. With `ended` it is followed until then; what was written before that is not missed."""
    left = request.limit_bytes
    since = stamp(int(request.since.timestamp() * 1_000_000_000)).encode() if request.since else b""
    async for records in _records(path, request.tail_lines, ended):
        shown = b"".join(_shown(record, timestamps=request.timestamps) for record in records if record[:30] >= since)
        if left is not None:
            shown = shown[:left]
            left -= len(shown)
        if shown:
            yield shown
        if left == 0:
            return


def _shown(record: bytes, *, timestamps: bool) -> bytes:
    """A record is a time, a stream, whole or part, and the line."""
    at, _, rest = record.partition(b" ")
    _, _, rest = rest.partition(b" ")
    extent, _, line = rest.partition(b" ")
    shown = line[:-1] if extent == PART else line
    return at + b" " + shown if timestamps else shown


async def _records(path: Path, tail_lines: int | None, ended: asyncio.Event | None) -> AsyncIterator[list[bytes]]:
    older = path.with_name(path.name + OLDER)
    skipped = 0
    if tail_lines is not None:
        skipped = max(0, _count_lines(older) + _count_lines(path) - tail_lines)
    async for records in _written(older, path, ended):
        yield records[skipped:]
        skipped = max(0, skipped - len(records))


async def _written(older: Path, path: Path, ended: asyncio.Event | None) -> AsyncIterator[list[bytes]]:
    for records in _whole_file(older):
        yield records
        await asyncio.sleep(0)
    with closing(_Cursor(path)) as cursor:
        while True:
            # Asked before reading: what was written until then is read.
            is_over = ended is None or ended.is_set()
            while records := cursor.read():
                yield records
                await asyncio.sleep(0)
            if ended is None or is_over:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), LOOK_AGAIN_S)


class _Cursor:
    """Where a reader is in a log. When the file was put aside for a new one, the rest of it comes first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BufferedReader | None = None

    def read(self) -> list[bytes]:
        """The next whole records; none, if there are no more yet."""
        if self._file is None:
            self._file = _open(self._path)
        records = self._read_file()
        if not records and self._file is not None and self._is_put_aside():
            self._file.close()
            self._file = _open(self._path)
            records = self._read_file()
        return records

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _read_file(self) -> list[bytes]:
        if self._file is None:
            return []
        data = self._file.read(BLOCK)
        whole = data.rfind(b"\n") + 1
        self._file.seek(whole - len(data), os.SEEK_CUR)
        return [line + b"\n" for line in data[:whole].split(b"\n")[:-1]]

    def _is_put_aside(self) -> bool:
        assert self._file is not None
        with suppress(FileNotFoundError):
            return self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        return False


def _whole_file(path: Path) -> Iterator[list[bytes]]:
    with closing(_Cursor(path)) as cursor:
        while records := cursor.read():
            yield records


def _count_lines(path: Path) -> int:
    file = _open(path)
    if file is None:
        return 0
    with file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(BLOCK), b""))


def _open(path: Path) -> BufferedReader | None:
    with suppress(FileNotFoundError):
        return path.open("rb")
    return None
