"""A Lease by which a process says that it lives, and tells what is new."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio

from tessera.errors import NotFound, Unreachable
from tessera.kube.heartbeats import Heartbeat
from tessera.kube.lease_records import micro_time
from tessera.kube.objects import Document, ObjectKey
from tests.unit.kube.clocks import FakeClock

pytestmark = pytest.mark.asyncio
LEASE = ObjectKey("kube-system", "tessera-agent-gpu-1")
INTERVAL_S = 10.0


class Bed:
    """A lease that is patched and made, and somebody who beats."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.exists = False
        self.is_away = False
        self.writes: list[tuple[str, Document]] = []
        self.marks: Document = {"annotations": {"told": "0"}}
        self.heartbeat = Heartbeat(
            self,  # type: ignore[arg-type] # it patches and creates
            LEASE,
            "gpu-1",
            interval_s=INTERVAL_S,
            owner={"kind": "Node", "name": "gpu-1"},
            marks=lambda: self.marks,
            clock=self.clock,
            chance=lambda: 0.5,
        )

    def within(self, seconds: float) -> "Bed":
        assert seconds <= INTERVAL_S, "a beat must be over before the next one"
        return self

    async def patch(self, _: object, name: str, body: Document, *, namespace: str) -> None:
        if self.is_away:
            raise Unreachable("nobody answers")
        if not self.exists:
            raise NotFound("gone", verb="patch", target=name, status=404, reason="NotFound")
        self._wrote("patch", name, namespace, body)

    async def create(self, _: object, body: Document, *, namespace: str) -> None:
        self.exists = True
        self._wrote("create", body["metadata"]["name"], namespace, body)

    def _wrote(self, verb: str, name: str, namespace: str, body: Document) -> None:
        assert ObjectKey(namespace, name) == LEASE
        self.writes.append((verb, body))

    async def pass_s(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await settled()


async def settled() -> None:
    """Nothing waits for anything but the clock, so a few rounds of the loop are enough for all to happen."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest_asyncio.fixture
async def bed() -> AsyncGenerator[Bed]:
    bed = Bed()
    beating = asyncio.ensure_future(bed.heartbeat.run())
    await settled()
    yield bed
    beating.cancel()


async def test_the_first_beat_makes_the_lease_with_its_owner_its_holder_and_what_is_to_be_told(bed: Bed):
    ((verb, body),) = bed.writes
    assert verb == "create"
    assert body["metadata"]["annotations"] == {"told": "0"}
    assert body["metadata"]["ownerReferences"] == [{"kind": "Node", "name": "gpu-1"}]
    assert body["spec"]["holderIdentity"] == "gpu-1"
    assert body["spec"]["renewTime"] == micro_time(bed.clock.wall())


async def test_later_beats_renew_it_with_what_is_to_be_told_then(bed: Bed):
    bed.marks = {"annotations": {"told": "1"}}
    await bed.pass_s(INTERVAL_S)
    verb, body = bed.writes[-1]
    assert (len(bed.writes), verb) == (2, "patch")
    assert body["metadata"] == {"annotations": {"told": "1"}}
    assert body["spec"]["renewTime"] == micro_time(bed.clock.wall())


async def test_news_do_not_wait_for_the_next_beat(bed: Bed):
    bed.heartbeat.beat_soon()
    await settled()
    assert len(bed.writes) == 2
    await settled()
    assert len(bed.writes) == 2, "one beat for one piece of news"


async def test_news_that_come_during_a_beat_get_a_beat_of_their_own(bed: Bed):
    patch = bed.patch

    async def patch_while_there_is_news(*args: Any, **options: Any) -> None:
        bed.patch = patch  # type: ignore[method-assign]
        bed.marks = {"annotations": {"told": "late"}}
        bed.heartbeat.beat_soon()
        await patch(*args, **options)

    bed.patch = patch_while_there_is_news  # type: ignore[method-assign]
    bed.heartbeat.beat_soon()
    await settled()
    assert bed.writes[-1][1]["metadata"] == {"annotations": {"told": "late"}}


async def test_a_beat_that_was_not_heard_is_followed_by_the_next(bed: Bed):
    bed.is_away = True
    await bed.pass_s(INTERVAL_S)
    assert len(bed.writes) == 1
    assert bed.heartbeat.silent_s == INTERVAL_S
    bed.is_away = False
    await bed.pass_s(INTERVAL_S)
    assert len(bed.writes) == 2
    assert bed.heartbeat.silent_s == 0


async def test_a_lease_that_somebody_deleted_is_made_again(bed: Bed):
    bed.exists = False
    await bed.pass_s(INTERVAL_S)
    assert [verb for verb, _ in bed.writes] == ["create", "create"]


async def test_whoever_waits_for_the_first_beat_goes_on_when_it_was_heard(bed: Bed):
    await asyncio.wait_for(bed.heartbeat.first(), 5)


async def test_before_the_first_beat_nobody_was_silent_for_any_time():
    assert Bed().heartbeat.silent_s is None
