"""What a node says about itself: only news, and handshakes in the clock's windows."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tessera.errors import Forbidden, Unreachable
from tessera.kube.kinds import Kind, Selection
from tessera.kube.watching import Bookmark, EventType, ObjectEvent, WatchEvent
from tessera.model.annotations import keys
from tessera.model.annotations.handshakes import HandshakeState, HandshakeStyle, decode_handshake
from tessera.model.annotations.registers import RegisterFormat
from tessera.model.devices import Device
from tessera.node.cards import Cards
from tessera.node.health import Health
from tessera.node.reporting import HANDSHAKE_EVERY_S, WINDOW_S, NodeReporter, changes_of
from tessera.vendors.loading import load_catalogue
from tessera.vendors.managers import Inventory
from tessera.vendors.reporting import in_form, report_cards
from tests.builders import a_card
from tests.unit.kube.clocks import FakeClock
from tests.unit.node.making import NODE

CATALOGUE = load_catalogue()
REGISTER, HANDSHAKE = "hami.io/node-nvidia-register", "hami.io/node-handshake-nvidia"
DCU_REGISTER, DCU_HANDSHAKE = "hami.io/node-dcu-register", "hami.io/node-handshake-dcu"
GPU, DCU = a_card("GPU-0"), a_card("DCU-0", vendor="DCU", model="DCU")


class FakeApi:
    """One Node, watched and patched as an API server does it, in memory."""

    def __init__(self, *, annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None) -> None:
        self.metadata = {"name": NODE, "annotations": annotations or {}, "labels": labels or {}}
        self.status: dict[str, Any] = {"nodeInfo": {"containerRuntimeVersion": "containerd://2.1.4"}}
        self.patches: list[dict[str, Any]] = []
        self.is_away = False
        self.may_write_status = True
        self._version = 1
        self._events: asyncio.Queue[None] = asyncio.Queue()

    @asynccontextmanager
    async def watch(self, kind: Kind[Any], selection: Selection, **_: Any) -> AsyncGenerator[AsyncIterator[Any]]:
        assert selection.fields == f"metadata.name={NODE}"
        yield self._follow(kind)

    async def _follow(self, kind: Kind[Any]) -> AsyncIterator[WatchEvent[Any]]:
        yield ObjectEvent(EventType.ADDED, self._decoded(kind))
        yield Bookmark(str(self._version), is_synced=True)
        while True:
            await self._events.get()
            yield ObjectEvent(EventType.MODIFIED, self._decoded(kind))

    def _decoded(self, kind: Kind[Any]) -> Any:
        metadata = self.metadata | {"uid": "node-uid", "resourceVersion": str(self._version)}
        return kind.decode(msgspec.json.encode({"metadata": metadata, "status": self.status}), "nodes")

    async def patch(self, _: Kind[Any], name: str, body: dict[str, Any], **__: Any) -> None:
        assert name == NODE
        if self.is_away:
            raise Unreachable("nobody answers")
        self.patches.append(body)
        for part, changes in body.get("metadata", {}).items():
            self.write(part, changes)
        if "status" in body:
            if not self.may_write_status:
                raise Forbidden("no", verb="patch", target=NODE, status=403, reason="Forbidden")
            self.set_status(**body["status"])

    def set_status(self, **changes: Any) -> None:
        self.status |= changes
        self._changed()

    def write(self, part: str, changes: dict[str, str | None]) -> None:
        kept = {key: value for key, value in self.metadata[part].items() if key not in changes}
        self.metadata[part] = kept | {key: value for key, value in changes.items() if value is not None}
        self._changed()

    def _changed(self) -> None:
        self._version += 1
        self._events.put_nowait(None)

    @property
    def said(self) -> dict[str, str]:
        return self.metadata["annotations"]


class FakeBackend:
    def __init__(self, *devices: Device) -> None:
        self.devices = devices

    def read(self) -> Inventory:
        return Inventory(self.devices)


async def settled() -> None:
    """Nothing waits for anything but the clock, so a few rounds of the loop are enough for all to happen."""
    for _ in range(50):
        await asyncio.sleep(0)


class Bed:
    def __init__(self, api: FakeApi, *devices: Device, **options: Any) -> None:
        self.api = api
        self.clock = FakeClock()
        self.backend = FakeBackend(*devices)
        self.cards = Cards({"all": self.backend}, Health(), clock=self.clock)
        options = {"catalogue": CATALOGUE, "clock": self.clock, "chance": lambda: 0.5} | options
        self.reporter = NodeReporter(api, NODE, cards=self.cards, **options)  # type: ignore[arg-type]

    async def look(self, *devices: Device) -> None:
        self.backend.devices = devices
        await self.cards.look()
        await settled()

    async def pass_s(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await settled()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Bed"]:
        await self.cards.look()
        async with asyncio.TaskGroup() as tasks:
            works = [tasks.create_task(work) for work in (self.reporter.nodes.run(), self.reporter.run())]
            await settled()
            yield self
            for work in works:
                work.cancel()


@pytest_asyncio.fixture
async def bed() -> AsyncGenerator[Bed]:
    async with Bed(FakeApi(), GPU).running() as bed:
        yield bed


@pytest.mark.asyncio
async def test_a_new_node_is_told_its_cards_a_handshake_and_its_label_in_one_write(bed: Bed):
    (patch,) = bed.api.patches
    assert set(patch["metadata"]["annotations"]) == {keys.INVENTORY, REGISTER, HANDSHAKE}
    assert patch["metadata"]["labels"] == {"gpu": "on"}
    assert decode_handshake(bed.api.said[HANDSHAKE]).at == bed.clock.wall()


@pytest.mark.asyncio
async def test_what_was_said_is_not_said_again(bed: Bed):
    await bed.pass_s(5.0)
    bed.cards.news.spread()
    await settled()
    bed.api.write("labels", {"zone": "a"})
    await settled()
    assert len(bed.api.patches) == 1


@pytest.mark.asyncio
async def test_a_card_that_changes_is_told_at_once_without_a_handshake(bed: Bed):
    await bed.pass_s(5.0)
    await bed.look(a_card("GPU-0", healthy=False))
    _, patch = bed.api.patches
    assert set(patch["metadata"]) == {"annotations"}
    assert set(patch["metadata"]["annotations"]) == {keys.INVENTORY, REGISTER}


@pytest.mark.asyncio
async def test_handshakes_come_once_in_each_window_of_the_clock_and_not_at_its_edge(bed: Bed):
    to_window_s = HANDSHAKE_EVERY_S - bed.clock.wall().timestamp() % HANDSHAKE_EVERY_S
    await bed.pass_s(to_window_s)
    assert len(bed.api.patches) == 1
    for window in range(1, 4):
        await bed.pass_s(WINDOW_S / 2)
        assert len(bed.api.patches) == 1 + window
        assert list(bed.api.patches[-1]["metadata"]["annotations"]) == [HANDSHAKE]
        assert decode_handshake(bed.api.said[HANDSHAKE]).at == bed.clock.wall().replace(microsecond=0)
        await bed.pass_s(HANDSHAKE_EVERY_S - WINDOW_S / 2)


@pytest.mark.asyncio
@pytest.mark.parametrize("asked", ["Requesting_2026-01-01 00:00:00", "Deleted_2026-01-01 00:00:00"])
async def test_a_scheduler_that_asks_is_answered_at_once(bed: Bed, asked: str):
    await bed.pass_s(5.0)
    bed.api.write("annotations", {HANDSHAKE: asked})
    await settled()
    assert decode_handshake(bed.api.said[HANDSHAKE]).state is HandshakeState.REPORTED
    assert [list(patch["metadata"]["annotations"]) for patch in bed.api.patches[1:]] == [[HANDSHAKE]]


@pytest.mark.asyncio
async def test_what_others_changed_or_removed_is_put_right(bed: Bed):
    register = bed.api.said[REGISTER]
    bed.api.write("annotations", {REGISTER: None})
    bed.api.write("labels", {"gpu": "off"})
    await settled()
    assert bed.api.said[REGISTER] == register
    assert bed.api.metadata["labels"]["gpu"] == "on"


@pytest.mark.asyncio
async def test_a_node_without_cards_is_left_alone():
    api = FakeApi(annotations={REGISTER: "somebody else's"}, labels={"gpu": "on"})
    async with Bed(api).running():
        assert api.patches == []


@pytest.mark.asyncio
async def test_what_was_said_of_cards_that_are_here_no_more_is_taken_back():
    told = report_cards(NODE, Inventory((GPU, DCU)), CATALOGUE)
    others = {"hami.io/node-register-xpu": "another agent's", "example.com/note": "a person's"}
    api = FakeApi(annotations=told | others | {DCU_HANDSHAKE: "Reported x"}, labels={"gpu": "on"})
    async with Bed(api, GPU).running():
        assert not {DCU_REGISTER, DCU_HANDSHAKE} & api.said.keys()
        assert others.items() <= api.said.items()
        assert {REGISTER, HANDSHAKE} <= api.said.keys()
        assert api.metadata["labels"] == {"gpu": "on"}


@pytest.mark.asyncio
async def test_nothing_is_taken_back_before_the_cards_were_looked_for():
    told = report_cards(NODE, Inventory((GPU,)), CATALOGUE)
    api = FakeApi(annotations=told, labels={"gpu": "on"})
    bed = Bed(api, GPU)
    async with asyncio.TaskGroup() as tasks:
        works = [tasks.create_task(work) for work in (bed.reporter.nodes.run(), bed.reporter.run())]
        await settled()
        assert api.patches == []
        await bed.look(GPU)
        assert [list(patch["metadata"]["annotations"]) for patch in api.patches] == [[HANDSHAKE]]
        for work in works:
            work.cancel()


@pytest.mark.asyncio
async def test_a_condition_that_may_not_be_written_does_not_keep_the_cards_from_being_told():
    api = FakeApi()
    api.status["nodeInfo"]["containerRuntimeVersion"] = "containerd://1.6.20"
    api.may_write_status = False
    async with Bed(api, GPU).running():
        assert REGISTER in api.said


@pytest.mark.asyncio
async def test_a_report_that_failed_is_tried_again():
    api = FakeApi()
    api.is_away = True
    async with Bed(api, GPU).running() as bed:
        assert api.patches == []
        api.is_away = False
        await bed.pass_s(60.0)
        assert len(api.patches) == 1
        assert REGISTER in api.said


@pytest.mark.asyncio
async def test_the_register_and_the_handshake_can_be_written_as_hami_writes_them():
    options = {"catalogue": in_form(CATALOGUE, RegisterFormat.JSON), "style": HandshakeStyle.HAMI}
    async with Bed(FakeApi(), GPU, **options).running() as bed:
        assert bed.api.said[REGISTER].startswith("[{")
        assert bed.api.said["hami.io/node-handshake"].endswith("+0000 UTC")
        assert HANDSHAKE not in bed.api.said


@pytest.mark.asyncio
async def test_limits_that_do_not_hold_are_told_once_and_taken_back():
    trouble = "the library is not on the node"
    async with Bed(FakeApi(), GPU, limits_trouble=lambda: trouble).running() as bed:
        (condition,) = bed.api.status["conditions"]
        assert (condition["type"], condition["status"]) == ("TesseraLimitsHeld", "False")
        assert condition["message"] == trouble
        bed.reporter.stir()
        await settled()
        assert len(bed.api.patches) == 2
        trouble = ""
        bed.reporter.stir()
        await settled()
        (condition,) = bed.api.status["conditions"]
        assert condition["status"] == "True"


@pytest.mark.asyncio
async def test_a_runtime_without_cdi_is_told_once_and_taken_back_when_it_has_it(bed: Bed):
    assert bed.reporter.binds_late
    bed.api.set_status(nodeInfo={"containerRuntimeVersion": "containerd://1.6.20"})
    await settled()
    assert bed.reporter.binds_late is False
    (condition,) = bed.api.status["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "NoContainerDeviceInterface")
    assert "--cdi=on" in condition["message"]
    assert len(bed.api.patches) == 2
    bed.api.set_status(nodeInfo={"containerRuntimeVersion": "containerd://2.0.1"})
    await settled()
    (condition,) = bed.api.status["conditions"]
    assert condition["status"] == "True"
    assert len(bed.api.patches) == 3


def test_only_what_differs_is_written():
    told = report_cards(NODE, Inventory((GPU,)), CATALOGUE)
    assert changes_of(told, told, CATALOGUE) == {}
    assert changes_of(told | {REGISTER: "old"}, told, CATALOGUE) == {REGISTER: told[REGISTER]}


def test_an_inventory_of_ours_that_cannot_be_read_is_written_over_and_nothing_is_removed():
    told = report_cards(NODE, Inventory((GPU,)), CATALOGUE)
    now = {keys.INVENTORY: "{", DCU_REGISTER: "somebody's"}
    assert changes_of(now, told, CATALOGUE) == told
