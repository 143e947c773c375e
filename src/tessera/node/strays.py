"""Strays: containers that hold tiles and were given no cards, or whose pod names other cards now."""

from collections.abc import Callable, Iterable

from tessera.errors import InvalidInput
from tessera.model.allocations import Allocation
from tessera.model.catalogue import Catalogue
from tessera.model.pod_allocations import read_pod_allocation
from tessera.model.pods import read_pod_request
from tessera.node.pods import Pod
from tessera.node.tiles import Tile
from tessera.vendors.rules import refine


class Strays:
    """`find_pod` knows the pods of this node by UID. A tile whose pod is gone is no stray: it waits to be removed."""

    def __init__(self, node: str, catalogue: Catalogue, find_pod: Callable[[str], Pod | None]) -> None:
        self._node = node
        self._catalogue = catalogue
        self._keys = catalogue.allocation_keys()
        self._find_pod = find_pod

    def among(self, tiles: Iterable[Tile]) -> tuple[Tile, ...]:
        return tuple(tile for tile in tiles if self._is_stray(tile))

    def _is_stray(self, tile: Tile) -> bool:
        pod = self._find_pod(tile.pod.uid)
        if pod is None:
            return False
        try:
            request = read_pod_request(pod, self._catalogue, refine)
            allocation = read_pod_allocation(pod, request, self._keys, self._node)
        except InvalidInput:
            return True
        return allocation is None or not _gives(allocation, tile)


def _gives(allocation: Allocation, tile: Tile) -> bool:
    """Of cards that were claimed a container may be let use less."""
    if {share.uuid for share in tile.shares} <= {share.uuid for share in allocation.claimed}:
        return True
    return any(set(tile.shares) <= set(shares) for shares in allocation.containers)
