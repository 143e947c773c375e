"""Tiles on disk: for each a directory that its container sees, a CDI specification, and a record for ourselves.

Files are put in place whole. The specification comes last, because from then on a container can be made from it. After
a restart of the agent all is still there.
"""

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import structlog

from tessera.files import put_whole
from tessera.node.cdi import cdi_document
from tessera.node.limits import FILE_NAME, limits_text
from tessera.node.run_directory import make_shared_file
from tessera.node.tiles import Tile
from tessera.vendors.rendering import ContainerEdits, Mount

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
CDI_PREFIX = "tessera-tile-"
PUBLIC, OURS = 0o644, 0o600


class _Record(msgspec.Struct, frozen=True):
    """`directories` were made for this container alone, `files` for it to write to."""

    tile: Tile
    directories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class TileStore:
    def __init__(self, state: Path, cdi: Path) -> None:
        self._tiles = state / "tiles"
        self._records = state / "records"
        self._cdi = cdi
        for directory in (self._tiles, self._records, self._cdi):
            directory.mkdir(parents=True, exist_ok=True)
        self._known = {record.tile.token: record for record in self._read_records()}

    def __iter__(self) -> Iterator[Tile]:
        return iter([record.tile for record in self._known.values()])

    def new_token(self) -> str:
        token = secrets.token_hex(8)
        self.directory(token).mkdir()
        return token

    def directory(self, token: str) -> Path:
        return self._tiles / token

    def write(self, tile: Tile, edits: ContainerEdits) -> None:
        """From now on a container that names the tile gets this."""
        for place in (self.directory(tile.token), self._records, self._cdi):
            place.mkdir(parents=True, exist_ok=True)
        written = [mount for mount in edits.mounts if not mount.read_only]
        made = [str(_make_shared(mount)) for mount in written]
        own = tuple(directory for directory in made if tile.pod.uid in directory)
        record = _Record(tile, own, tuple(mount.host_path for mount in written if mount.is_file))
        self._put(record)
        put_whole(
            self._cdi_file(tile.token), json.dumps(cdi_document(tile.token, edits), indent=2).encode(), mode=PUBLIC
        )
        self._known[tile.token] = record

    def rewrite(self, tile: Tile) -> None:
        """The container that has the tile goes on with these limits."""
        record = msgspec.structs.replace(self._known[tile.token], tile=tile)
        self._put(record)
        self._known[tile.token] = record

    def _put(self, record: _Record) -> None:
        token = record.tile.token
        put_whole(self.directory(token) / FILE_NAME, limits_text(record.tile).encode(), mode=PUBLIC)
        put_whole(self._records / f"{token}.json", msgspec.json.encode(record), mode=OURS)

    def make_again(self, token: str) -> None:
        """The files that the container writes to: they do not outlive the machine's boot, and the tile does."""
        for file in self._known[token].files:
            make_shared_file(Path(file))

    def remove(self, token: str) -> None:
        record = self._known.pop(token, None)
        for directory in (self.directory(token), *(record.directories if record else ())):
            shutil.rmtree(directory, ignore_errors=True)
        self._cdi_file(token).unlink(missing_ok=True)
        (self._records / f"{token}.json").unlink(missing_ok=True)

    def age_s(self, token: str, now_s: float) -> float:
        """How long ago its directory was made, by the wall clock."""
        with suppress(OSError):
            return now_s - self.directory(token).stat().st_mtime
        return float("inf")

    def tokens(self) -> set[str]:
        """Every token of which anything is on disk, also those that no container came for."""
        found = {path.name for path in self._tiles.glob("*")}
        found |= {path.stem for path in self._records.glob("*.json")}
        return found | {path.stem.removeprefix(CDI_PREFIX) for path in self._cdi.glob(f"{CDI_PREFIX}*.json")}

    def _cdi_file(self, token: str) -> Path:
        return self._cdi / f"{CDI_PREFIX}{token}.json"

    def _read_records(self) -> Iterator[_Record]:
        for path in sorted(self._records.glob("*.json")):
            try:
                yield msgspec.json.decode(path.read_bytes(), type=_Record)
            except (OSError, msgspec.MsgspecError) as error:
                log.warning("record of a tile not read", path=str(path), error=str(error))


def _make_shared(mount: Mount) -> Path:
    """Containers of any user write there. The directory that it is, or is in."""
    place = Path(mount.host_path)
    if mount.is_file:
        make_shared_file(place)
        return place.parent
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777)
    return place
