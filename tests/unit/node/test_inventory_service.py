"""The inventory over gRPC: the cards, how they are joined, and who holds them."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc.aio
import pytest
import pytest_asyncio

from tessera.model.devices import Link
from tessera.node.cards import Cards
from tessera.node.health import Health
from tessera.node.inventory_service import SERVICE, InventoryService
from tessera.node.protocols.inventory_pb2 import Inventory as Told
from tessera.node.protocols.inventory_pb2 import ListCardsRequest, WatchCardsRequest
from tessera.node.regions import RegionCard
from tessera.node.tiles import Tile
from tessera.node.using import CardUse, ContainerKey
from tessera.vendors.managers import Inventory
from tests.builders import a_card, a_share
from tests.unit.node.making import NODE, a_tile

pytestmark = pytest.mark.asyncio
PATIENCE_S = 10


class Bed:
    def __init__(self) -> None:
        self.inventory = Inventory((a_card("GPU-0", index=0), a_card("GPU-1", index=1)), (Link("GPU-0", "GPU-1", 7),))
        self.cards = Cards({"NVIDIA": self}, Health())
        self.tiles: list[Tile] = []
        self.looks = 0
        self.uses: list[CardUse] = []
        self.service = InventoryService(NODE, self.cards, self.look, self.cards.news, lambda: self.uses)

    def look(self) -> list[Tile]:
        self.looks += 1
        return self.tiles

    def read(self) -> Inventory:
        return self.inventory


@pytest_asyncio.fixture
async def bed() -> Bed:
    bed = Bed()
    await bed.cards.look()
    return bed


@pytest_asyncio.fixture
async def channel(bed: Bed) -> AsyncGenerator[grpc.aio.Channel]:
    with TemporaryDirectory(prefix="tessera-") as directory:
        address = f"unix:{Path(directory) / 'inventory.sock'}"
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((bed.service.handler(),))
        server.add_insecure_port(address)
        await server.start()
        async with grpc.aio.insecure_channel(address) as channel:
            yield channel
        await server.stop(None)


async def test_cards_are_listed_with_their_links_from_both_ends_and_their_holders(bed: Bed, channel: grpc.aio.Channel):
    share = a_share("GPU-1", 1000, 30)
    bed.tiles = [a_tile("aa", share), a_tile("bb", share, resource="gpu.scheduling/claim")]
    listing = channel.unary_unary(
        f"/{SERVICE}/List",
        request_serializer=ListCardsRequest.SerializeToString,
        response_deserializer=Told.FromString,
    )
    told = await listing(ListCardsRequest(), timeout=PATIENCE_S)
    first, second = told.cards
    assert (told.node, first.uuid, first.slots, first.memory_mib, first.healthy) == (NODE, "GPU-0", 10, 16_384, True)
    assert [(link.uuid, link.score) for link in first.links] == [("GPU-1", 7)]
    assert [(link.uuid, link.score) for link in second.links] == [("GPU-0", 7)]
    assert list(first.holders) == []
    (holder,) = second.holders
    assert (holder.namespace, holder.pod, holder.pod_uid, holder.container) == ("default", "train-0", "uid-1", "main")
    assert (holder.memory_mib, holder.cores_percent) == (1000, 30)
    assert not holder.HasField("use"), "it has not used the card"


async def test_what_a_container_uses_in_truth_is_told_with_what_it_may(bed: Bed, channel: grpc.aio.Channel):
    tile = a_tile("aa", share := a_share("GPU-1", 1000, 30))
    now = RegionCard(
        uuid="GPU-1",
        used_bytes=7,
        context_bytes=0,
        limit_bytes=0,
        share_percent=0,
        gpu_ns=2 * 10**9,
        throttled_ns=10**9,
        refusals=3,
        launched_ms=0,
    )
    holder = ContainerKey(tile.pod, tile.container)
    bed.tiles = [tile]
    bed.uses = [CardUse(holder=holder, position=0, share=share, now=now, processes=2, busy_percent=12.5)]
    listing = channel.unary_unary(
        f"/{SERVICE}/List",
        request_serializer=ListCardsRequest.SerializeToString,
        response_deserializer=Told.FromString,
    )
    told = await listing(ListCardsRequest(), timeout=PATIENCE_S)
    (use,) = [holder.use for holder in told.cards[1].holders]
    assert (use.memory_bytes, use.processes, use.refusals) == (7, 2, 3)
    assert (use.busy_percent, use.gpu_seconds, use.throttled_seconds) == (12.5, 2.0, 1.0)


async def test_a_watcher_hears_what_is_and_then_every_change_and_nothing_else(bed: Bed, channel: grpc.aio.Channel):
    watching = channel.unary_stream(
        f"/{SERVICE}/Watch",
        request_serializer=WatchCardsRequest.SerializeToString,
        response_deserializer=Told.FromString,
    )(WatchCardsRequest(), timeout=PATIENCE_S)
    heard = aiter(watching)
    assert [card.healthy for card in (await anext(heard)).cards] == [True, True]
    bed.cards.news.spread()
    async with asyncio.timeout(PATIENCE_S):
        while bed.looks < 2:
            await asyncio.sleep(0.01)
    bed.cards.note_fault("GPU-0", 79)
    ill, well = (await anext(heard)).cards
    assert (ill.healthy, ill.health_reason) == (
        False,
        "XID 79, the card has fallen off the bus; the card must be reset",
    )
    assert (well.healthy, well.health_reason) == (True, "")
    watching.cancel()
