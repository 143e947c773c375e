"""The tiles of this node as another process keeps them: read again and again, and never written.

So whoever only looks can run beside the device plugin, with its directory mounted read-only.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog

from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.node.tiles import Tile

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LOOK_AGAIN_S = 1.0


class _Record(msgspec.Struct, frozen=True):
    """What a looker needs of it."""

    tile: Tile


class _Read(NamedTuple):
    """A file as it was when it was read. A record is never changed in place, so another one is another file."""

    inode: int
    written_ns: int
    tile: Tile | None


class TileRecords:
    """`state` is the directory of a TileStore; it may come later than we."""

    def __init__(self, state: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._directory = state / "records"
        self._clock = clock
        self._read: dict[Path, _Read] = {}
        self.look()

    def __iter__(self) -> Iterator[Tile]:
        return iter([read.tile for read in self._read.values() if read.tile is not None])

    async def follow(self, changed: Callable[[], None]) -> None:
        """Until cancelled. `changed` is called when there are other tiles than before."""
        while True:
            await self._clock.sleep(LOOK_AGAIN_S)
            if self.look():
                changed()

    def look(self) -> bool:
        """Read what is new, and say whether anything is other than before."""
        before = self._read
        self._read = {path: read for path in sorted(self._directory.glob("*.json")) if (read := self._fresh(path))}
        return self._read != before

    def _fresh(self, path: Path) -> _Read | None:
        """None for a file that has gone meanwhile."""
        try:
            found = path.stat()
            known = self._read.get(path)
            if known and (known.inode, known.written_ns) == (found.st_ino, found.st_mtime_ns):
                return known
            return _Read(found.st_ino, found.st_mtime_ns, _decode(path))
        except FileNotFoundError:
            return None


def _decode(path: Path) -> Tile | None:
    """None for one that cannot be read: the others are shown all the same."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Record).tile
    except FileNotFoundError:
        raise
    except (OSError, msgspec.MsgspecError) as error:
        log.warning("record of a tile not read", path=str(path), error=str(error))
        return None
