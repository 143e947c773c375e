"""Tiles: what the kubelet counts and hands out, as many as the node's cards have slots.

A tile stands for no card until its container starts. Only its health must be said earlier: of an unhealthy card the
tiles that are in use there and as many free ones turn unhealthy, so that what the kubelet counts as free is what the
healthy cards have free.

A claim is for a pod as a whole, and each of its containers holds one tile that says so. Those tiles stand for no room
on cards, so there are as many as a node can have containers, and they are always healthy.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from tessera.model.allocations import CardShare
from tessera.model.annotations import keys
from tessera.model.catalogue import Vendor
from tessera.model.devices import Device
from tessera.model.requests import PodRef
from tessera.node.terms import STRICT, Terms

CDI_KIND = "tessera.io/tile"
MOUNT_POINT = "/etc/tessera"
MOST_CONTAINERS = 2048
"""Of 250 pods, more than which no kubelet is made to run, with eight containers each."""
CLAIM_TILES: Mapping[str, bool] = {f"tile-{number}": True for number in range(MOST_CONTAINERS)}


class TileKind(msgspec.Struct, frozen=True):
    """By which resource the kubelet counts these tiles, and whose cards they become."""

    resource: str
    vendor: Vendor

    @property
    def by_claim(self) -> bool:
        return self.resource == keys.CLAIM


def tiles_of(vendor: Vendor) -> TileKind:
    return TileKind(vendor.resources.count, vendor)


def claim_tiles_of(vendor: Vendor) -> TileKind:
    return TileKind(keys.CLAIM, vendor)


class Tile(msgspec.Struct, frozen=True, kw_only=True):
    """What one container was given of one vendor's cards. `token` is its name, `ids` are the kubelet's for it.

    By a claim there are more cards than ids, or fewer.
    """

    token: str
    resource: str
    ids: tuple[str, ...]
    pod: PodRef
    container: str
    shares: tuple[CardShare, ...]
    terms: Terms = STRICT

    @property
    def cards(self) -> dict[str, str]:
        """The card behind each id; the container sees the cards in this order."""
        return {tile_id: share.uuid for tile_id, share in zip(self.ids, self.shares, strict=False)}


def cdi_name(token: str) -> str:
    return f"{CDI_KIND}={token}"


def mount_point(vendor: str) -> str:
    """Where a container sees its tile of a vendor's cards."""
    return f"{MOUNT_POINT}/{vendor.lower()}"


def is_tile(container_path: str) -> bool:
    return container_path.startswith(f"{MOUNT_POINT}/")


def tile_ids(devices: Sequence[Device]) -> list[str]:
    return [f"tile-{number}" for number in range(sum(device.slots for device in devices))]


def judge_tiles(devices: Sequence[Device], card_of: Mapping[str, str], given: Collection[str] = ()) -> dict[str, bool]:
    """Whether each tile is healthy. `card_of` gives the card behind each tile that is in use.

    `given` were handed out to containers that have not started: they are the last to be called unhealthy, because a
    kubelet that starts anew does not admit a pod again whose tiles are not healthy.
    """
    ids = tile_ids(devices)
    free = sorted((tile_id for tile_id in ids if tile_id not in card_of), key=lambda tile_id: tile_id not in given)
    ill = set[str]()
    for device in devices:
        if device.healthy:
            continue
        used = [tile_id for tile_id in ids if card_of.get(tile_id) == device.uuid][: device.slots]
        unused = len(free) - (device.slots - len(used))
        ill.update(used, free[max(0, unused) :])
        del free[max(0, unused) :]
    return {tile_id: tile_id not in ill for tile_id in ids}
