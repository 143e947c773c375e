"""A running container that is given more or less of the cards it has: its limits file is written anew.

The library in it reads the file again by itself, so nothing is restarted. Other cards cannot be given to a container
that runs; whoever names some gets a stray, which is told.
"""

from collections.abc import Sequence

import msgspec
import structlog

from tessera.errors import StartRefused
from tessera.kube.caching import Change
from tessera.model.allocations import CardShare
from tessera.model.catalogue import Catalogue
from tessera.node.pods import Pod
from tessera.node.preparing import Preparer
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def resized(tile: Tile, shares: Sequence[CardShare]) -> Tile | None:
    """The tile with these figures; None where they are the ones it has, or are of other cards."""
    same_cards = [share.uuid for share in shares] == [share.uuid for share in tile.shares]
    if not same_cards or tuple(shares) == tile.shares:
        return None
    return msgspec.structs.replace(tile, shares=tuple(shares))


class Resizer:
    """Follows the pods of this node."""

    def __init__(self, catalogue: Catalogue, preparer: Preparer, store: TileStore) -> None:
        self._catalogue = catalogue
        self._preparer = preparer
        self._store = store

    def pod_changed(self, change: Change[Pod]) -> None:
        if change.after is not None:
            self.resize(change.after)

    def resize(self, pod: Pod) -> None:
        """Give its containers that run what it has now."""
        for tile in [tile for tile in self._store if tile.pod.uid == pod.metadata.uid]:
            self._resize(tile, pod)

    def _resize(self, tile: Tile, pod: Pod) -> None:
        vendor = self._catalogue.by_name(tile.shares[0].vendor)
        try:
            given = self._preparer.given_to(pod, vendor, tile.container) if vendor else None
            shares = self._preparer.shares_for(pod, vendor, tile.container, given) if vendor and given else ()
            if new := resized(tile, shares):
                self._store.rewrite(new)
                log.info("container resized", pod=str(tile.pod), container=tile.container)
        except (StartRefused, OSError) as error:
            log.warning("container not resized", pod=str(tile.pod), container=tile.container, error=str(error))
