"""A ledger that does not agree with the API is found and healed, and what is merely under way is not called drift."""

from collections.abc import Callable

import pytest

from tessera.engine.ledger import State
from tessera.kube.caching import Change
from tessera.kube.client import Deletion
from tessera.kube.kinds import NODES, PODS
from tessera.kube.timing import SystemClock
from tessera.model.allocations import Allocation, CardShare
from tessera.model.requests import PodRef
from tessera.scheduler.drift import Drift
from tests.scheduler.in_process import PLAN, Scheduler, key_of, make_pod, read_pod, scheduler, until
from tests.unit.scheduler.cluster import node_document

pytestmark = pytest.mark.asyncio
ALLOCATED = "hami.io/vgpu-devices-allocated"
AT_ONCE = Deletion(grace_s=0)
FREE = (10, 81_920, 100)
TAKEN = (9, 31_920, 100)


def a_card(ours, node="left") -> str:
    fleet = ours.world.ledger.fleet
    return fleet.uuids[fleet.row_of[node]][0]


async def test_what_agrees_is_no_drift(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod = await make_pod(api, namespace)
        await ours.bind(pod, "left")
        assert await ours.drift.check() == []
        assert ours.drift.checks_total == 1
        assert ours.drift.last_checked_at is not None


async def test_a_corrupted_figure_is_found_told_and_healed(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod = await make_pod(api, namespace)
        await ours.bind(pod, "left")
        fleet = ours.world.ledger.fleet
        row = fleet.row_of["left"]
        fleet.free_memory[row, 0] += 777
        (found,) = await ours.drift.check()
        assert found == ("left", a_card(ours), (9, 32_697, 100), TAKEN)
        assert int(fleet.free_memory[row, 0]) == 31_920
        assert (ours.drift.found_total, ours.drift.standing) == (1, 1)
        assert await ours.drift.check() == []
        assert (ours.drift.found_total, ours.drift.standing) == (1, 0)


async def test_a_pod_bound_behind_our_back_is_found_and_charged(access, api, namespace):
    async with scheduler(access, api) as ours, scheduler(access, api) as other:
        pod = await make_pod(api, namespace)
        await until(lambda: ours.seen(pod))
        await ours.stop_listening()
        await other.bind(pod, "left")
        card, host = await ours.drift.check()
        assert card == ("left", a_card(ours), FREE, TAKEN)
        assert (host.node, host.card) == ("left", "host")
        assert ours.held(pod).state is State.BOUND


async def test_an_annotation_changed_behind_our_back_is_found_and_believed(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod = await make_pod(api, namespace)
        await ours.bind(pod, "left")
        await ours.stop_listening()
        smaller = {ALLOCATED: f"{a_card(ours)},NVIDIA,1234,0:;"}
        await api.patch(PODS, "web", {"metadata": {"annotations": smaller}}, namespace=namespace)
        assert await ours.drift.check() == [("left", a_card(ours), TAKEN, (9, 80_686, 100))]
        assert [share.memory_mib for share in ours.held(pod).allocation.shares] == [1234]


async def test_a_pod_that_ended_behind_our_back_is_found_and_freed(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod = await make_pod(api, namespace)
        await ours.bind(pod, "left")
        await ours.stop_listening()
        await api.delete(PODS, "web", namespace=namespace, how=AT_ONCE)
        assert {difference.card for difference in await ours.drift.check()} == {a_card(ours), "host"}
        assert ours.held(pod) is None


async def test_a_node_that_came_and_went_behind_our_back_is_found(access, api):
    async with scheduler(access, api) as ours:
        await ours.stop_listening()
        await api.create(NODES, node_document("third", PLAN))
        assert {difference.node for difference in await ours.drift.check()} == {"third"}
        assert ours.world.has_cards("third")
        await api.delete(NODES, "third")
        assert {difference.node for difference in await ours.drift.check()} == {"third"}
        assert not ours.world.has_cards("third")


async def test_what_is_promised_and_not_in_the_api_yet_is_no_drift(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod = await make_pod(api, namespace)
        request = ours.world.request_of(pod)
        ours.commits.take(PodRef(namespace, "web", pod["metadata"]["uid"]), request, "left")
        ours.world.ledger.adopt(PodRef(namespace, "drained", "uid-drained"), request, a_holding_on(ours, "right"))
        ours.world.ledger.drain("uid-drained")
        assert await ours.drift.check() == []
        assert ours.held(pod).state is State.RESERVED


async def test_cards_that_stay_taken_although_their_pod_no_longer_names_them_are_no_drift(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod = await make_pod(api, namespace)
        await ours.bind(pod, "left")
        wiped = dict.fromkeys((await read_pod(api, pod))["metadata"]["annotations"])
        await api.patch(PODS, "web", {"metadata": {"annotations": wiped}}, namespace=namespace)
        await until(lambda: key_of(pod) in ours.lacking)
        assert await ours.drift.check() == []
        assert ours.held(pod).allocation.shares


async def test_news_that_comes_between_the_two_looks_is_no_drift(access, api, namespace):
    async with scheduler(access, api) as ours, scheduler(access, api) as other:
        pod = await make_pod(api, namespace)
        await until(lambda: ours.seen(pod))
        await ours.stop_listening()
        await other.bind(pod, "left")
        await until(lambda: other.seen(pod).spec.node_name)

        def hear() -> None:
            ours.world.pod_changed(Change(key_of(pod), None, other.seen(pod)))

        ours.drift = Drift(api, ours.world, is_ready=lambda: True, settle_s=0.1, clock=ClockThatTells(0.1, hear))
        assert await ours.drift.check() == []
        assert ours.held(pod).state is State.BOUND
        assert ours.drift.found_total == 0


class ClockThatTells(SystemClock):
    """Something happens while the check waits for its second look."""

    def __init__(self, wait_s: float, happen: Callable[[], None]) -> None:
        self._wait_s = wait_s
        self._happen = happen

    async def sleep(self, seconds: float) -> None:
        if seconds == self._wait_s:
            self._happen()
        await super().sleep(0)


def a_holding_on(ours: Scheduler, node: str) -> Allocation:
    return Allocation(node, ((CardShare(uuid=a_card(ours, node), vendor="NVIDIA", memory_mib=7, cores_percent=0),),))
