"""The inventory over gRPC, read-only: what the cards of this node are, how they are joined, and who holds them."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

import grpc
import grpc.aio

from tessera.errors import InvalidRequest
from tessera.model.devices import Device
from tessera.node.cards import Cards
from tessera.node.news import News
from tessera.node.protocols.inventory_pb2 import (
    Card,
    Holder,
    Inventory,
    Link,
    ListCardsRequest,
    Use,
    WatchCardsRequest,
)
from tessera.node.rpc import Context, stream, unary
from tessera.node.tiles import Tile
from tessera.node.using import CardUse

NS_PER_S = 1e9
SERVICE = "tessera.node.v1.CardInventory"


class InventoryService:
    """`uses` are what containers use now. Who watches is not told of them: they never rest."""

    def __init__(
        self,
        node: str,
        cards: Cards,
        tiles: Callable[[], Iterable[Tile]],
        news: News,
        uses: Callable[[], Sequence[CardUse]] = tuple,
    ) -> None:
        self._node = node
        self._cards = cards
        self._tiles = tiles
        self._news = news
        self._uses = uses

    async def list(self, _: ListCardsRequest, __: Context) -> Inventory:
        return describe(self._node, self._cards, tuple(self._tiles()), self._uses())

    async def watch(self, _: WatchCardsRequest, __: Context) -> AsyncIterator[Inventory]:
        told: Inventory | None = None
        while True:
            changed = self._news.upcoming()
            now = describe(self._node, self._cards, tuple(self._tiles()))
            if now != told:
                told = now
                yield now
            await changed.wait()

    def handler(self) -> grpc.GenericRpcHandler:
        methods = {"List": unary(self.list, ListCardsRequest), "Watch": stream(self.watch, WatchCardsRequest)}
        return grpc.method_handlers_generic_handler(SERVICE, methods)


async def serve_inventory(service: InventoryService, host: str, port: int) -> None:
    """Until cancelled."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((service.handler(),))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise InvalidRequest(f"{address} cannot be listened on for the inventory; name another address") from error
    await server.start()
    try:
        await server.wait_for_termination()
    finally:
        await server.stop(None)


def describe(node: str, cards: Cards, tiles: Iterable[Tile], uses: Iterable[CardUse] = ()) -> Inventory:
    links: dict[str, list[Link]] = {}
    for link in cards.inventory.links:
        links.setdefault(link.one, []).append(Link(uuid=link.other, score=link.score))
        links.setdefault(link.other, []).append(Link(uuid=link.one, score=link.score))
    used = {(use.holder.pod.uid, use.holder.container, use.share.uuid): _use(use) for use in uses}
    holders: dict[str, dict[tuple[str, str], Holder]] = {}
    for tile in tiles:
        for share in tile.shares:
            # A container of a claim that names its cards by count too has two tiles, and is one holder.
            holders.setdefault(share.uuid, {})[tile.pod.uid, tile.container] = Holder(
                namespace=tile.pod.namespace,
                pod=tile.pod.name,
                pod_uid=tile.pod.uid,
                container=tile.container,
                memory_mib=share.memory_mib,
                cores_percent=share.cores_percent,
                use=used.get((tile.pod.uid, tile.container, share.uuid)),
            )
    described = [
        _card(device, cards.reasons, links.get(device.uuid, []), list(holders.get(device.uuid, {}).values()))
        for device in cards.inventory.devices
    ]
    return Inventory(node=node, cards=described)


def _use(use: CardUse) -> Use:
    return Use(
        memory_bytes=use.now.used_bytes,
        processes=use.processes,
        busy_percent=use.busy_percent or 0.0,
        gpu_seconds=use.now.gpu_ns / NS_PER_S,
        throttled_seconds=use.now.throttled_ns / NS_PER_S,
        refusals=use.now.refusals,
    )


def _card(device: Device, reasons: Mapping[str, str], links: list[Link], holders: list[Holder]) -> Card:
    return Card(
        uuid=device.uuid,
        index=device.index,
        vendor=device.vendor,
        model=device.model,
        slots=device.slots,
        memory_mib=device.memory_mib,
        cores_percent=device.cores_percent,
        numa=device.numa,
        island=device.island,
        healthy=device.healthy,
        health_reason=reasons.get(device.uuid, ""),
        mode=device.mode,
        links=links,
        holders=holders,
    )
