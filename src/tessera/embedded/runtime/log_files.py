"""A container's log on disk, as container runtimes write it: a time, a stream, whole or part, and the line.

    2026-01-02T03:04:05.000000006Z stdout F the line
    2026-01-02T03:04:05.000000007Z stderr P a part of a line

A part has no end of line: the last words of a process, or a piece of a line that is too long. When the file is full it
becomes the older half, and the half before that is dropped: a log never has more than two files.
"""

import os
import time

OLDER = ".1"
LONGEST_LINE = 16 * 1024
WHOLE, PART = b"F", b"P"


def stamp(at_ns: int) -> str:
    """As all logs have it, so that the texts sort as the times do."""
    seconds, rest = divmod(at_ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z"


class LogFile:
    """The directory is held open: the writer may live where its path means something else, or nothing."""

    def __init__(self, path: str, most_bytes: int) -> None:
        directory, self._name = os.path.split(path)
        self._directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._most_bytes = most_bytes // 2
        self._open()

    def write(self, records: bytes) -> None:
        if self._size and self._size + len(records) > self._most_bytes:
            os.close(self._file)
            os.rename(self._name, self._name + OLDER, src_dir_fd=self._directory, dst_dir_fd=self._directory)
            self._open()
        self._size += len(records)
        while records:
            records = records[os.write(self._file, records) :]

    def close(self) -> None:
        os.close(self._file)
        os.close(self._directory)

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(self._name, flags, 0o640, dir_fd=self._directory)
        self._size = os.fstat(self._file).st_size


class LineStamper:
    """Makes records of one stream's bytes."""

    def __init__(self, stream: str) -> None:
        self._stream = stream.encode()
        self._rest = b""

    def take(self, data: bytes) -> bytes:
        """The records of all lines that are complete now, and of what is too long to wait for its end."""
        prefix = self._prefix()
        *lines, self._rest = (self._rest + data).split(b"\n")
        records = [record for line in lines for record in _records(prefix, line)]
        while len(self._rest) > LONGEST_LINE:
            records.append(_record(prefix, PART, self._rest[:LONGEST_LINE]))
            self._rest = self._rest[LONGEST_LINE:]
        return b"".join(records)

    def end(self) -> bytes:
        rest, self._rest = self._rest, b""
        return _record(self._prefix(), PART, rest) if rest else b""

    def _prefix(self) -> bytes:
        return b"%s %s " % (stamp(time.time_ns()).encode(), self._stream)


def _records(prefix: bytes, line: bytes) -> list[bytes]:
    starts = range(0, max(len(line), 1), LONGEST_LINE)
    pieces = [line[start : start + LONGEST_LINE] for start in starts]
    return [*(_record(prefix, PART, piece) for piece in pieces[:-1]), _record(prefix, WHOLE, pieces[-1])]


def _record(prefix: bytes, extent: bytes, line: bytes) -> bytes:
    return b"%s%s %s\n" % (prefix, extent, line)
