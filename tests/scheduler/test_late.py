"""Pods that somebody else put on a node get their cards there: the real API server, a bad network."""

import asyncio

import pytest

from tessera.engine.ledger import State
from tessera.errors import Conflict, Unreachable
from tessera.kube.client import Deletion
from tessera.kube.kinds import PODS
from tessera.kube.reconciler import Again
from tessera.scheduler.leading import Leadership
from tests.kube.proxy import Proxy
from tests.scheduler.in_process import key_of, make_pod, read_pod, scheduler, through, until

pytestmark = pytest.mark.asyncio
ALLOCATED = "hami.io/vgpu-devices-allocated"
WHOLE = "81920"
AT_ONCE = Deletion(grace_s=0)


async def test_a_pod_that_came_without_cards_gets_them_on_its_node(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod = await make_pod(api, namespace, node="right")
        assert await ours.allocate_late(pod) is None
        landed = await read_pod(api, pod)
        assert "NVIDIA,50000,0:" in landed["metadata"]["annotations"][ALLOCATED]
        assert landed["metadata"]["annotations"]["hami.io/vgpu-node"] == "right"
        assert ours.held(pod).state is State.BOUND
        assert [share.memory_mib for share in ours.held(pod).allocation.shares] == [50_000]


async def test_nothing_is_decided_before_another_scheduler_may_have_written_its_choice(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod = await make_pod(api, namespace, node="left")
        await until(lambda: key_of(pod) in ours.lacking)
        assert isinstance(await ours.late.allocate(key_of(pod)), Again)
        assert ALLOCATED not in (await read_pod(api, pod))["metadata"].get("annotations", {})
        uuid = ours.world.ledger.fleet.uuids[ours.world.ledger.fleet.row_of["left"]][0]
        theirs = {ALLOCATED: f"{uuid},NVIDIA,1234,0:;"}
        await api.patch(PODS, "web", {"metadata": {"annotations": theirs}}, namespace=namespace)
        await until(lambda: ours.held(pod).allocation.shares)
        assert await ours.allocate_late(pod) is None
        assert (await read_pod(api, pod))["metadata"]["annotations"] == theirs


async def test_a_pod_that_finds_no_cards_is_told_why_once_and_gets_some_when_they_are_freed(access, api, namespace):
    async with scheduler(access, api) as ours:
        first = await make_pod(api, namespace, "first", WHOLE, node="left")
        await ours.allocate_late(first)
        second = await make_pod(api, namespace, "second", "1", node="left")
        for _ in range(2):
            assert await ours.allocate_late(second) is None
        assert ours.refused == [f"{namespace}/second: left: no card has 1 MiB free, the roomiest has 0 MiB"]
        assert ours.late.refused == {key_of(second): ours.refused[0]}
        assert ours.held(second).allocation.shares == ()
        await api.delete(PODS, "first", namespace=namespace, how=AT_ONCE)
        await until(lambda: ours.held(first) is None)
        await ours.allocate_late(second)
        assert "NVIDIA,1,0:" in (await read_pod(api, second))["metadata"]["annotations"][ALLOCATED]
        assert ours.late.refused == {}


async def test_a_scheduler_that_does_not_lead_gives_no_cards(access, api, namespace):
    async with scheduler(access, api) as ours:
        ours.leads = False
        pod = await make_pod(api, namespace, node="left")
        assert isinstance(await ours.allocate_late(pod), Again)
        assert ALLOCATED not in (await read_pod(api, pod))["metadata"].get("annotations", {})


async def test_what_was_wiped_off_a_pod_is_written_on_it_again_though_nobody_else_would_get_it(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod = await make_pod(api, namespace)
        await ours.bind(pod, "left")
        before = ours.held(pod).allocation
        wiped = dict.fromkeys((await read_pod(api, pod))["metadata"]["annotations"])
        await api.patch(PODS, "web", {"metadata": {"annotations": wiped}}, namespace=namespace)
        fleet = ours.world.ledger.fleet
        fleet.healthy[fleet.row_of["left"], 0] = False
        await ours.allocate_late(pod)
        assert ours.held(pod).allocation == before
        again = (await read_pod(api, pod))["metadata"]["annotations"][ALLOCATED]
        assert again == f"{before.shares[0].uuid},NVIDIA,50000,0:;"


async def test_a_pod_that_changed_meanwhile_is_looked_at_again(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod = await make_pod(api, namespace, node="left")
        await until(lambda: key_of(pod) in ours.lacking)
        ours.remember(pod)
        await api.patch(PODS, "web", {"metadata": {"labels": {"changed": "yes"}}}, namespace=namespace)
        assert isinstance(await ours.allocate_late(pod), Again)
        assert ours.held(pod).allocation.shares == (), "it takes its place, and no cards"
        ours.remembered = None
        await until(lambda: (ours.seen(pod).metadata.labels or {}).get("changed"))
        assert await ours.allocate_late(pod) is None
        assert ALLOCATED in (await read_pod(api, pod))["metadata"]["annotations"]


async def test_a_pod_made_anew_under_its_name_does_not_get_the_cards_of_the_old_one(access, api, namespace):
    async with scheduler(access, api) as ours:
        old = await make_pod(api, namespace, node="left")
        await until(lambda: key_of(old) in ours.lacking)
        ours.remember(old)
        await api.delete(PODS, "web", namespace=namespace, how=AT_ONCE)
        new = await make_pod(api, namespace, node="right")
        await until(lambda: ours.held(new) is not None)
        assert isinstance(await ours.allocate_late(old), Again)
        assert ALLOCATED not in (await read_pod(api, new))["metadata"].get("annotations", {})


async def test_an_answer_that_got_lost_keeps_the_cards_until_it_is_known_that_it_landed(access, api, namespace):
    async with Proxy(access.server) as proxy, scheduler(through(proxy, access), api) as ours:
        pod = await make_pod(api, namespace, node="left")
        await until(lambda: key_of(pod) in ours.lacking)
        await ours.commits.read(key_of(pod))  # a connection is there
        ours.remember(pod)
        proxy.withhold_answers()
        with pytest.raises(Unreachable):
            await ours.allocate_late(pod)
        assert ours.lost == [key_of(pod)]
        assert ours.held(pod).allocation.shares
        assert isinstance(await ours.late.allocate(key_of(pod)), Again), "not while the first may still land"
        proxy.resume()
        await ours.commits.clear_up(key_of(pod))
        assert ours.held(pod).state is State.BOUND
        assert ours.held(pod).allocation.shares


async def test_a_write_that_never_arrived_is_fenced_off_before_its_cards_are_free(access, api, namespace):
    async with Proxy(access.server) as proxy, scheduler(through(proxy, access), api) as ours:
        pod = await make_pod(api, namespace, node="left")
        await until(lambda: key_of(pod) in ours.lacking)
        proxy.refuse()
        with pytest.raises(Unreachable):
            await ours.allocate_late(pod)
        assert ours.held(pod).allocation.shares
        proxy.accept()
        await ours.commits.clear_up(key_of(pod))
        assert ours.held(pod).allocation.shares == ()
        stale = {"resourceVersion": pod["metadata"]["resourceVersion"], "annotations": {ALLOCATED: "late"}}
        with pytest.raises(Conflict):
            await api.patch(PODS, "web", {"metadata": stale}, namespace=namespace)
        await until(lambda: "tessera.io/fenced-at" in (ours.seen(pod).metadata.annotations or {}))
        await ours.allocate_late(pod)
        assert ALLOCATED in (await read_pod(api, pod))["metadata"]["annotations"]


async def test_a_new_leader_fences_off_what_the_last_one_may_have_decided_about_it(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod, plain = await make_pod(api, namespace, node="left"), await make_pod(api, namespace, "settled")
        await ours.bind(plain, "right")
        await until(lambda: ours.seen(pod) and ours.seen(plain).spec.node_name)
        leadership = Leadership(api, ours.pods, election=Elected(), is_undecided=ours.world.is_undecided)
        establishing = asyncio.create_task(leadership.run())
        await until(lambda: leadership.is_established)
        establishing.cancel()
        stale = {"resourceVersion": pod["metadata"]["resourceVersion"], "annotations": {ALLOCATED: "late"}}
        with pytest.raises(Conflict):
            await api.patch(PODS, "web", {"metadata": stale}, namespace=namespace)
        assert "tessera.io/fenced-at" in ours.seen(pod).metadata.annotations, "we know the pod as it is now"
        assert "tessera.io/fenced-at" not in (await read_pod(api, plain))["metadata"]["annotations"]


class Elected:
    """Leads from the start, after nobody."""

    is_leader = True
    epoch = 1

    def may_write(self) -> bool:
        return True

    def may_read_state(self) -> bool:
        return True

    async def gained(self) -> None: ...

    async def lost(self) -> None:
        await asyncio.Event().wait()

    async def run(self) -> None: ...


async def test_a_pod_that_is_being_deleted_is_left_alone(access, api, namespace):
    async with scheduler(access, api) as ours:
        pod = await make_pod(api, namespace, node="left")
        await until(lambda: key_of(pod) in ours.lacking)
        await api.delete(PODS, "web", namespace=namespace)
        await until(lambda: ours.seen(pod).metadata.deletion_timestamp is not None)
        assert await ours.allocate_late(pod) is None
        assert ALLOCATED not in (await read_pod(api, pod))["metadata"].get("annotations", {})
