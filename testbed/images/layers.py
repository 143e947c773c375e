"""A layer: entries written as a tar that is the same, byte for byte, wherever and whenever it is written.

The cache knows a layer by its content: paths, modes, owners and the bytes of every file. A cached layer is read through
before it is used again, so a damaged one is made anew. Layers are not compressed, because nobody carries them over a
network: for the image of tessera, 155 MB, gzip takes 1.6 to 5 s and containerd imports the result no faster.
"""

import hashlib
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import msgspec

from testbed.images.cache import make_once
from testbed.images.digests import file_digest
from testbed.images.entries import Directory, Entry, File, Symlink, fingerprint, gather, unreadable

# The first moment that a zip can hold: older ones break programs that pack what they find in an image.
MTIME = 315532800
CAPABILITIES = "SCHILY.xattr.security.capability"


class Layer(msgspec.Struct, frozen=True):
    """`made_by` is shown in the image's history."""

    made_by: str
    entries: tuple[Entry, ...]


class Blob(msgspec.Struct, frozen=True):
    """A file of the cache, named after its content."""

    path: Path
    sha256: str

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def layer(made_by: str, *entries: Entry | Iterable[Entry]) -> Layer:
    """A layer of single entries and of many together, such as `entries_of` gives."""
    flat = (part for given in entries for part in ([given] if isinstance(given, Entry) else given))
    return Layer(made_by, gather(flat))


def write_layer(layer: Layer, cache: Path) -> Blob:
    """The layer's tar in the cache."""
    home = cache / "layers" / content_key(layer)
    make_once(home, lambda scratch: _write_tar_and_digest(layer, scratch), is_whole=_is_whole)
    return Blob(home / "layer.tar", (home / "sha256").read_text())


def content_key(layer: Layer) -> str:
    key = hashlib.sha256()
    for entry in layer.entries:
        key.update(fingerprint(entry) + b"\n")
    return key.hexdigest()


def _is_whole(home: Path) -> bool:
    try:
        return file_digest(home / "layer.tar") == (home / "sha256").read_text()
    except OSError:
        return False


def _write_tar_and_digest(layer: Layer, home: Path) -> None:
    home.mkdir(parents=True)
    with tarfile.open(home / "layer.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for entry in layer.entries:
            _add(tar, entry)
    (home / "sha256").write_text(file_digest(home / "layer.tar"))


def _add(tar: tarfile.TarFile, entry: Entry) -> None:
    header = tarfile.TarInfo(entry.path)
    header.mtime = MTIME
    match entry:
        case Symlink():
            header.type, header.linkname, header.mode = tarfile.SYMTYPE, entry.target, 0o777
            tar.addfile(header)
        case Directory():
            header.type, header.mode, header.uid, header.gid = tarfile.DIRTYPE, entry.mode, entry.uid, entry.gid
            tar.addfile(header)
        case File():
            header.mode, header.uid, header.gid = entry.mode, entry.uid, entry.gid
            if entry.capabilities:
                header.pax_headers = {CAPABILITIES: entry.capabilities.decode("ascii")}
            _add_content(tar, header, entry)


def _add_content(tar: tarfile.TarFile, header: tarfile.TarInfo, file: File) -> None:
    with _open(file) as content:
        header.size = content.seek(0, io.SEEK_END)
        content.seek(0)
        tar.addfile(header, content)


def _open(file: File) -> IO[bytes]:
    if isinstance(file.content, bytes):
        return io.BytesIO(file.content)
    try:
        return open(file.content, "rb")
    except OSError as error:
        unreadable(file.path, file.content, error)
