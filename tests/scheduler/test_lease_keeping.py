"""The Leases of claimed cards against a real API server: who is alive, who lingers, who only seems to hold a card."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from tessera.apps.deciding import Deciding
from tessera.engine.ledger import State
from tessera.engine.policies import DEFAULT
from tessera.errors import BindRefused, NotFound
from tessera.kube.access import Access
from tessera.kube.client import Client, Deletion
from tessera.kube.kinds import LEASES, NODES, PODS
from tessera.kube.objects import Document
from tessera.model.annotations.keys import AGENT_LABEL, AGENT_NODE, ENDED
from tessera.model.extender import BindingArgs
from tests.scheduler.in_process import NODE_NAMES, PLAN, until
from tests.unit.scheduler.cluster import node_document

pytestmark = pytest.mark.asyncio
LEASE, AGENT = "gpu-left-0", "tessera-agent-left"
RUNNING = {
    "status": {"containerStatuses": [{"name": "main", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}
}


@asynccontextmanager
async def a_scheduler(access: Access) -> AsyncGenerator[Deciding]:
    """All of it but those who ask."""
    async with Client(access) as client:
        deciding = Deciding(client, DEFAULT)
        works = [asyncio.create_task(work) for work in deciding.works()]
        await until(deciding.decides)
        yield deciding
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


@pytest_asyncio.fixture
async def scheduler(access: Access) -> AsyncIterator[Deciding]:
    async with a_scheduler(access) as scheduler:
        yield scheduler


@pytest_asyncio.fixture
async def agent(api: Client) -> AsyncIterator[None]:
    """Somebody on the node who tells when processes have ended."""
    marks = {"labels": {AGENT_LABEL: "left"}, "annotations": {AGENT_NODE: "left"}}
    await api.create(LEASES, {"metadata": {"name": AGENT, **marks}}, namespace="kube-system")
    yield
    await api.delete(LEASES, AGENT, namespace="kube-system")


@pytest_asyncio.fixture(autouse=True)
async def clean(api: Client) -> AsyncIterator[None]:
    yield
    for lease in (await api.list(LEASES)).items:
        if lease["metadata"]["name"].startswith("gpu-"):
            await api.delete(LEASES, lease["metadata"]["name"], namespace="default")


async def a_pinned_pod(api: Client, namespace: str, name: str = "web", **spec: object) -> Document:
    limits = {"gpu.scheduling/claim": "1"}
    body = {
        "metadata": {"name": name, "annotations": {"gpu.scheduling/allocated": "left:0"}},
        "spec": {
            "containers": [{"name": "main", "image": "nothing", "resources": {"limits": limits}}],
            "tolerations": [{"operator": "Exists"}],
            **spec,
        },
    }
    return await api.create(PODS, body, namespace=namespace)


async def bind(scheduler: Deciding, pod: Document) -> None:
    head = pod["metadata"]
    args = BindingArgs(pod_name=head["name"], pod_namespace=head["namespace"], pod_uid=head["uid"], node="left")
    await until(lambda: scheduler.pods.find("uid", head["uid"]))
    await scheduler.binder.bind(args)


async def lease_holder(api: Client) -> str | None:
    try:
        return (await api.get(LEASES, LEASE, namespace="default"))["spec"]["holderIdentity"]
    except NotFound:
        return None


async def until_held_by(api: Client, holder: str | None) -> None:
    async with asyncio.timeout(10):
        while await lease_holder(api) != holder:
            await asyncio.sleep(0.02)


async def lose_by_force(api: Client, scheduler: Deciding, pod: Document) -> None:
    """Its container runs, and nobody has seen it end."""
    head = pod["metadata"]
    await api.patch(PODS, head["name"], RUNNING, namespace=head["namespace"], subresource="status")
    await until(lambda: scheduler.pods.find("uid", head["uid"])[0].status.has_running_containers)
    await until(lambda: scheduler.recovery.draining.may_linger("left", head["uid"]))
    await api.delete(PODS, head["name"], namespace=head["namespace"], how=Deletion(grace_s=0))
    await until(lambda: _state(scheduler, head["uid"]) is State.DRAINING)


def _state(scheduler: Deciding, uid: str) -> State | None:
    held = scheduler.world.ledger.holding(uid)
    return held.state if held else None


@pytest.mark.usefixtures("agent")
async def test_a_pod_that_is_gone_by_force_keeps_its_lease_until_its_end_is_told(
    api: Client, namespace: str, scheduler: Deciding
):
    pod = await a_pinned_pod(api, namespace)
    await bind(scheduler, pod)
    await lose_by_force(api, scheduler, pod)
    assert await lease_holder(api) == pod["metadata"]["uid"]
    ended = {"metadata": {"annotations": {ENDED: pod["metadata"]["uid"]}}}
    await api.patch(LEASES, AGENT, ended, namespace="kube-system")
    await until_held_by(api, None)


@pytest.mark.usefixtures("agent")
async def test_a_scheduler_that_starts_anew_knows_from_the_lease_that_the_card_may_be_used(
    api: Client, namespace: str, access: Access
):
    async with a_scheduler(access) as first:
        pod = await a_pinned_pod(api, namespace)
        await bind(first, pod)
        await lose_by_force(api, first, pod)
    async with a_scheduler(access) as second:
        uid = pod["metadata"]["uid"]
        assert _state(second, uid) is State.DRAINING, "before anything is decided"
        late = await a_pinned_pod(api, namespace, "late")
        with pytest.raises(BindRefused, match=r"0 \(in use\)|leased to"):
            await bind(second, late)
        await api.patch(LEASES, AGENT, {"metadata": {"annotations": {ENDED: uid}}}, namespace="kube-system")
        await until_held_by(api, None)
        await bind(second, late)
        await until_held_by(api, late["metadata"]["uid"])


@pytest.mark.usefixtures("agent")
async def test_who_deletes_the_lease_of_a_pod_that_is_gone_frees_its_card(
    api: Client, namespace: str, scheduler: Deciding
):
    pod = await a_pinned_pod(api, namespace)
    await bind(scheduler, pod)
    await lose_by_force(api, scheduler, pod)
    await api.delete(LEASES, LEASE, namespace="default")
    await until(lambda: _state(scheduler, pod["metadata"]["uid"]) is None)
    assert await lease_holder(api) is None


@pytest.mark.usefixtures("agent")
async def test_a_node_that_is_gone_takes_its_leases_with_it(api: Client, namespace: str, scheduler: Deciding):
    pod = await a_pinned_pod(api, namespace)
    await bind(scheduler, pod)
    await lose_by_force(api, scheduler, pod)
    await api.delete(NODES, "left")
    await until_held_by(api, None)
    await api.create(NODES, node_document(NODE_NAMES[0], PLAN))


async def test_a_node_that_is_gone_before_its_pod_takes_its_leases_with_it(
    api: Client, namespace: str, scheduler: Deciding
):
    pod = await a_pinned_pod(api, namespace)
    await bind(scheduler, pod)
    await api.delete(NODES, "left")
    await until(lambda: "left" not in scheduler.world.ledger.fleet.row_of)
    await api.delete(PODS, "web", namespace=namespace, how=Deletion(grace_s=0))
    await until_held_by(api, None)
    await api.create(NODES, node_document(NODE_NAMES[0], PLAN))


@pytest.mark.usefixtures("agent")
async def test_a_lease_of_nobody_is_taken_over_where_an_agent_tells_of_ends(
    api: Client, namespace: str, scheduler: Deciding
):
    await until(lambda: scheduler.recovery.draining.may_linger("left", "abc-123"))
    await api.create(LEASES, {"metadata": {"name": LEASE}, "spec": {"holderIdentity": "abc-123"}}, namespace="default")
    pod = await a_pinned_pod(api, namespace)
    await bind(scheduler, pod)
    await until_held_by(api, pod["metadata"]["uid"])


async def test_a_pinned_pod_that_somebody_put_on_another_node_gets_no_cards_there(
    api: Client, namespace: str, scheduler: Deciding
):
    pod = await a_pinned_pod(api, namespace, nodeName="right")
    refused = scheduler.recovery.late.refused
    await until(lambda: refused)
    assert "right: the node's labels do not match" in next(iter(refused.values()))
    assert not scheduler.world.ledger.holding(pod["metadata"]["uid"]).allocation.shares  # type: ignore[union-attr]


async def test_a_card_that_a_living_pod_leases_from_somebody_else_is_not_given_away(
    api: Client, namespace: str, scheduler: Deciding
):
    other = await api.create(PODS, _plain_pod("other"), namespace=namespace)
    await until(lambda: scheduler.pods.find("uid", other["metadata"]["uid"]))
    await api.create(
        LEASES, {"metadata": {"name": LEASE}, "spec": {"holderIdentity": other["metadata"]["uid"]}}, namespace="default"
    )
    pod = await a_pinned_pod(api, namespace)
    with pytest.raises(BindRefused, match="is leased to a pod with UID"):
        await bind(scheduler, pod)
    assert scheduler.world.ledger.holding(pod["metadata"]["uid"]) is None
    await api.delete(PODS, "other", namespace=namespace, how=Deletion(grace_s=0))
    await until(lambda: not scheduler.pods.find("uid", other["metadata"]["uid"]))
    await bind(scheduler, pod)
    await until_held_by(api, pod["metadata"]["uid"])


async def test_a_bind_that_fails_gives_the_lease_back(api: Client, namespace: str, scheduler: Deciding):
    pod = await a_pinned_pod(api, namespace, schedulingGates=[{"name": "example.com/wait"}])
    with pytest.raises(BindRefused):
        await bind(scheduler, pod)
    await until_held_by(api, None)


def _plain_pod(name: str) -> Document:
    spec = {"nodeName": "left", "containers": [{"name": "main", "image": "nothing"}]}
    return {"metadata": {"name": name}, "spec": spec}
