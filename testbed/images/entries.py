"""What a layer is made of: files, folders and links, each with a path from the root of the image.

Here a path that leaves the root, a name that a runtime would take for an order to delete, two entries that contradict
each other and an entry below something that is no folder are refused, before anything is written.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import msgspec

from testbed.images.digests import file_digest
from testbed.images.errors import ImageFailed

WHITEOUT = ".wh."


class File(msgspec.Struct, frozen=True):
    """`content` is the bytes, or the file on this machine that has them. `capabilities` is as the kernel stores it."""

    path: str
    content: Path | bytes
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    capabilities: bytes = b""


class Directory(msgspec.Struct, frozen=True):
    path: str
    mode: int = 0o755
    uid: int = 0
    gid: int = 0


class Symlink(msgspec.Struct, frozen=True):
    path: str
    target: str


Entry = File | Directory | Symlink


def gather(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Every path once, in order, with the folders that lead to it."""
    gathered: dict[str, Entry] = {}
    for entry in entries:
        _check(entry)
        standing = gathered.setdefault(entry.path, entry)
        if standing != entry and fingerprint(standing) != fingerprint(entry):
            raise ImageFailed(
                f"{entry.path}: is given twice with different content, expected once; drop one of the two"
            )
    for path in tuple(gathered):
        for parent in _parents(path):
            if not isinstance(gathered.setdefault(parent, Directory(parent)), Directory):
                raise ImageFailed(f"{path}: lies below {parent}, which is no folder; give the path that it leads to")
    return tuple(gathered[path] for path in sorted(gathered))


def entries_of(folder: Path, *, at: str = "", wanted: Callable[[str], bool] = bool) -> Iterator[Entry]:
    """All that a folder holds, found in the image at `at`; `wanted` is asked about each path in the image."""
    for found in sorted(_scan(folder), key=lambda found: found.name):
        path = f"{at}/{found.name}" if at else found.name
        if not wanted(path):
            continue
        if found.is_symlink():
            yield Symlink(path, os.readlink(found.path))
        elif found.is_dir():
            yield Directory(path)
            yield from entries_of(Path(found.path), at=path, wanted=wanted)
        elif found.is_file():
            is_program = found.stat().st_mode & stat.S_IXUSR
            yield File(path, Path(found.path), mode=0o755 if is_program else 0o644)
        else:
            raise ImageFailed(f"{found.path}: is neither a file, a folder nor a link, expected one of these")


def fingerprint(entry: Entry) -> bytes:
    """Differs wherever two entries would differ in an image."""
    match entry:
        case File():
            kind = ("file", entry.mode, entry.uid, entry.gid, entry.capabilities.hex(), _content_digest(entry))
        case Directory():
            kind = ("directory", entry.mode, entry.uid, entry.gid)
        case Symlink():
            kind = ("symlink", entry.target)
    return msgspec.json.encode((entry.path, *kind))


def unreadable(path: str, source: object, error: OSError) -> NoReturn:
    raise ImageFailed(f"{path}: its content cannot be read from {source}, expected a file: {error.strerror}") from error


def _check(entry: Entry) -> None:
    parts = entry.path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in entry.path:
        raise ImageFailed(f"{entry.path!r}: leaves the root of the image, expected a path such as usr/bin/env")
    if not entry.path.isprintable() or any(part.startswith(WHITEOUT) for part in parts):
        raise ImageFailed(f"{entry.path!r}: cannot be the name of a file in an image; rename it")
    if isinstance(entry, Symlink):
        _check_target(entry)


def _check_target(link: Symlink) -> None:
    if not link.target or "\0" in link.target:
        raise ImageFailed(f"{link.path}: leads to {link.target!r}, expected a path")
    if os.path.normpath(os.path.join(os.path.dirname(link.path), link.target)).split("/")[0] == "..":
        raise ImageFailed(f"{link.path}: leads to {link.target}, expected a place within the image")


def _parents(path: str) -> Iterator[str]:
    while parent := os.path.dirname(path):
        yield parent
        path = parent


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError as error:
        raise ImageFailed(f"{folder}: cannot be listed, expected a folder: {error.strerror}") from error


def _content_digest(file: File) -> str:
    if isinstance(file.content, bytes):
        return hashlib.sha256(file.content).hexdigest()
    try:
        return file_digest(file.content)
    except OSError as error:
        unreadable(file.path, file.content, error)
