"""What a GpuNodeStatus says of a node's cards: their health, how they are joined, and whose pods use them. Pure."""

from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter

from tessera.engine.wiring import card_ids
from tessera.kube.objects import Document
from tessera.model.devices import Device
from tessera.node.tiles import Tile


def gpu_status(devices: Iterable[Device], silent: Collection[str], tiles: Iterable[Tile]) -> Document:
    """`silent` are cards that are not told of any more, `tiles` those of pods that have not ended."""
    cards = list(devices)
    by_id = sorted(zip(card_ids(cards), cards, strict=True), key=itemgetter(0))
    islands, holders = _number_islands(card for _, card in by_id), _find_holders(tiles)
    told = [
        {"id": card_id, **_describe(card, card.uuid in silent, islands, holders.get(card.uuid, set()))}
        for card_id, card in by_id
    ]
    return {"total": len(told), "devices": told}


def _describe(card: Device, is_silent: bool, islands: Mapping[str, str], holders: Collection[str]) -> Document:
    """A card that cannot be used has no bandwidth to anybody."""
    health = "Unknown" if is_silent else "Healthy" if card.healthy else "Unhealthy"
    return {
        "health": health,
        "bandwidthGBps": card.bandwidth_gbps if card.healthy else 0,
        **({"island": islands[card.island]} if card.island else {}),
        "inUseBy": sorted(holders),
    }


def _number_islands(cards: Iterable[Device]) -> dict[str, str]:
    """In the order of their lowest ids: vendors and drivers each name them as they like."""
    named = dict.fromkeys(card.island for card in cards if card.island)
    return {island: f"nvlink-group-{number}" for number, island in enumerate(named)}


def _find_holders(tiles: Iterable[Tile]) -> dict[str, set[str]]:
    holders: dict[str, set[str]] = {}
    for tile in tiles:
        for share in tile.shares:
            holders.setdefault(share.uuid, set()).add(tile.pod.uid)
    return holders
