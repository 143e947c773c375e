"""Files that others read while we write them, who see the old content or the new one, and files that others write."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def put_whole(path: Path, content: bytes, *, mode: int) -> None:
    """What was put before a power cut is there after it. Nobody can read it for a moment who may not afterwards."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)  # whatever the umask takes away
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def opened_with_care(path: Path) -> Generator[int]:
    """A descriptor to read from. Whatever others put there, nobody is waited for and nothing else is opened."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
