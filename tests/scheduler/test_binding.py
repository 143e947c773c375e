"""One Binding lands at most, and cards are free again only when none can: the real API server, a bad network."""

import asyncio

import pytest

from tessera.engine.ledger import State
from tessera.errors import BindRefused, Conflict
from tessera.kube.kinds import PODS
from tessera.kube.objects import ObjectKey
from tessera.kube.pod_verbs import bind_pod
from tests.kube.proxy import Proxy
from tests.scheduler.in_process import make_pod, read_pod, scheduler, through

pytestmark = pytest.mark.asyncio


async def test_node_and_cards_land_in_one_write(access, api, namespace):
    pod = await make_pod(api, namespace)
    async with scheduler(access, api, namespace) as ours:
        await ours.bind(pod, "left")
        landed = await read_pod(api, pod)
        assert landed["spec"]["nodeName"] == "left"
        assert "NVIDIA,50000,0:" in landed["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"]
        await ours.bind(pod, "left")
        with pytest.raises(BindRefused, match="the pod is on left already, cannot bind it to right"):
            await ours.bind(pod, "right")


async def test_a_pod_that_changed_after_it_was_seen_is_bound_all_the_same(access, api, namespace):
    pod = await make_pod(api, namespace)
    async with scheduler(access, api, namespace) as ours:
        ours.remember(pod)
        await api.patch(PODS, "web", {"metadata": {"labels": {"changed": "yes"}}}, namespace=namespace)
        await ours.bind(pod, "left")
        assert (await read_pod(api, pod))["spec"]["nodeName"] == "left"


async def test_a_pod_made_anew_under_its_name_is_another_pod(access, api, namespace):
    old = await make_pod(api, namespace)
    await api.delete(PODS, "web", namespace=namespace)
    new = await make_pod(api, namespace)
    async with scheduler(access, api, namespace) as ours:
        with pytest.raises(BindRefused, match=f"the pod is another one now, its UID is {new['metadata']['uid']}"):
            await ours.bind(old, "left")


async def test_a_pod_that_is_gone_cannot_be_bound(access, api, namespace):
    pod = await make_pod(api, namespace)
    async with scheduler(access, api, namespace) as ours:
        ours.remember(pod)
        await api.delete(PODS, "web", namespace=namespace)
        with pytest.raises(BindRefused, match="web"):
            await ours.bind(pod, "left")
        assert ours.world.ledger.holding(pod["metadata"]["uid"]) is None


async def test_a_node_that_has_filled_up_is_refused_with_the_reason(access, api, namespace):
    first, second = await make_pod(api, namespace, "first"), await make_pod(api, namespace, "second")
    async with scheduler(access, api, namespace) as ours:
        await ours.bind(first, "left")
        with pytest.raises(BindRefused, match="left: no card has 50000 MiB free, the roomiest has 31920 MiB"):
            await ours.bind(second, "left")
        await ours.bind(second, "right")


async def test_an_answer_that_got_lost_frees_nothing_and_the_repeat_succeeds(access, api, namespace):
    pod = await make_pod(api, namespace)
    uid = pod["metadata"]["uid"]
    async with Proxy(access.server) as proxy, scheduler(through(proxy, access), api, namespace) as ours:
        await ours.commits.read(ObjectKey(namespace, "web"))  # a connection is there
        proxy.withhold_answers()
        with pytest.raises(BindRefused, match="no answer within 1 s"):
            await ours.bind(pod, "left")
        assert ours.lost == [ObjectKey(namespace, "web")]
        assert ours.world.ledger.holding(uid) is not None
        proxy.resume()
        await ours.commits.clear_up(ObjectKey(namespace, "web"))
        held = ours.world.ledger.holding(uid)
        assert held is not None
        assert held.state is State.BOUND
        await ours.bind(pod, "left")


async def test_a_binding_that_never_arrived_is_fenced_off_before_its_cards_are_free(access, api, namespace):
    pod = await make_pod(api, namespace)
    uid, version = pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]
    async with Proxy(access.server) as proxy, scheduler(through(proxy, access), api, namespace) as ours:
        proxy.refuse()
        with pytest.raises(BindRefused, match="cannot be reached"):
            await ours.bind(pod, "left")
        proxy.accept()
        with pytest.raises(BindRefused, match="an earlier binding to left may still land"):
            await ours.bind(pod, "right")
        await ours.commits.clear_up(ObjectKey(namespace, "web"))
        assert ours.world.ledger.holding(uid) is None
        with pytest.raises(Conflict):
            await bind_pod(api, ObjectKey(namespace, "web"), "left", uid=uid, resource_version=version)
        await ours.bind(pod, "right")
        assert (await read_pod(api, pod))["spec"]["nodeName"] == "right"


async def test_of_two_schedulers_one_binds_the_pod_and_the_other_is_told(access, api, namespace):
    pod = await make_pod(api, namespace)
    async with scheduler(access, api, namespace) as one, scheduler(access, api, namespace) as other:
        outcomes = await asyncio.gather(one.bind(pod, "left"), other.bind(pod, "right"), return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["BindRefused", "NoneType"]
        loser = other if outcomes[0] is None else one
        node = (await read_pod(api, pod))["spec"]["nodeName"]
        async with asyncio.timeout(10):
            while (held := loser.world.ledger.holding(pod["metadata"]["uid"])) is None or held.allocation.node != node:
                await asyncio.sleep(0.01)


async def test_a_scheduler_that_does_not_lead_binds_nothing(access, api, namespace):
    pod = await make_pod(api, namespace)
    async with scheduler(access, api, namespace) as ours:
        ours.leads = False
        with pytest.raises(BindRefused, match="this scheduler does not lead any more"):
            await ours.bind(pod, "left")
        assert ours.world.ledger.holding(pod["metadata"]["uid"]) is None
        assert "nodeName" not in (await read_pod(api, pod))["spec"]
