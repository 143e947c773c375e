"""The GpuNodeStatus of a node is written when it must be, and only then, on the embedded API server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from tessera.errors import NotFound
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.kinds import GPU_NODE_STATUSES, NODES
from tessera.kube.objects import Document
from tessera.node.cards import Cards
from tessera.node.health import Health
from tessera.node.status_reporting import LOOK_AGAIN_S, MANAGER, NOT_INSTALLED_S, StatusReporter
from tessera.node.tiles import Tile
from tessera.operators.installing import install_definitions
from tessera.vendors.managers import Inventory
from tests.builders import a_card, a_share
from tests.embedded.server import Server
from tests.unit.kube.clocks import FakeClock
from tests.unit.node.making import NODE, a_tile

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(60)]
PATIENCE_S = 20


class Bed:
    """It is its own cards. `settle` lets the reporter look once more."""

    def __init__(self, client: Client, node_uid: str) -> None:
        self.client = client
        self.tiles: list[Tile] = []
        self.inventory = Inventory((a_card("GPU-0", index=0), a_card("GPU-1", index=1)))
        self.cards = Cards({"NVIDIA": self}, Health())
        self.clock = FakeClock()
        self.reporter = StatusReporter(client, NODE, self.cards, lambda: self.tiles, lambda: node_uid, clock=self.clock)

    def read(self) -> Inventory:
        return self.inventory

    async def status(self) -> Document:
        return await self.client.get(GPU_NODE_STATUSES, NODE)

    async def until(self, users: list[str], *, other_than: str = "") -> Document:
        """The status that names these users of the first card; another object than the one with that UID."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(NotFound, KeyError):
                    found = await self.status()
                    if found["status"]["devices"][0]["inUseBy"] == users and found["metadata"]["uid"] != other_than:
                        return found
                await asyncio.sleep(0.05)

    async def install(self) -> None:
        await install_definitions(self.client, "test")
        await self.clock.until_asleep()
        self.clock.advance(NOT_INSTALLED_S)

    async def known(self) -> None:
        """Wait until the reporter has heard of its status; it asks for the kind now and then."""
        async with asyncio.timeout(PATIENCE_S):
            while not len(self.reporter.statuses):
                await asyncio.sleep(0.05)

    async def settle(self) -> None:
        await self.clock.until_asleep()
        self.clock.advance(LOOK_AGAIN_S)
        await self.clock.until_asleep()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.stop()


@pytest_asyncio.fixture
async def bed(server: Server) -> AsyncIterator[Bed]:
    """Its kind is not installed yet."""
    async with Client(find_access(server.kubeconfig)) as client:
        node = await client.create(NODES, {"metadata": {"name": NODE}})
        bed = Bed(client, node["metadata"]["uid"])
        await bed.cards.look()
        works = [asyncio.create_task(work) for work in (bed.reporter.statuses.run(), bed.reporter.run())]
        yield bed
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


async def test_where_its_kind_is_not_installed_that_is_told_once_and_the_status_comes_with_it(bed: Bed):
    with capture_logs() as told:
        for _ in range(3):
            await bed.clock.until_asleep()
            bed.clock.advance(NOT_INSTALLED_S)
    warnings = [line["event"] for line in told if line["log_level"] == "warning"]
    assert warnings == ["status of cards not written, its kind is not installed"]
    await bed.install()
    written = await bed.until([])
    assert written["spec"] == {"nodeName": NODE}
    assert [owner["kind"] for owner in written["metadata"]["ownerReferences"]] == ["Node"]
    assert {field["manager"] for field in written["metadata"]["managedFields"]} == {MANAGER}


async def test_a_status_is_written_at_once_when_something_changes_and_otherwise_never(bed: Bed):
    await bed.install()
    await bed.until([])
    await bed.known()
    with capture_logs() as told:
        await bed.settle()
    assert not told, "nothing is asked of the API server"
    bed.tiles = [a_tile("aa", a_share("GPU-0", 1, 1), uid="uid-1")]
    bed.reporter.stir()
    assert (await bed.until(["uid-1"]))["status"]["total"] == 2
    bed.tiles = []
    bed.cards.news.spread()
    await bed.until([])


async def test_a_status_that_is_deleted_or_changed_by_hand_is_as_it_was(bed: Bed):
    await bed.install()
    first = await bed.until([])
    await bed.known()
    await bed.client.delete(GPU_NODE_STATUSES, NODE)
    await bed.until([], other_than=first["metadata"]["uid"])
    wrong = {"status": {"total": 7, "devices": [{"id": 0, "inUseBy": ["nobody"]}]}}
    await bed.client.patch(GPU_NODE_STATUSES, NODE, wrong, subresource="status")
    assert (await bed.until([]))["status"]["total"] == 2
