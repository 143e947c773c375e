"""A pod deleted by force where an agent is: what it says on its Lease decides about the cards, in the whole process."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tessera.apps.recovery import Recovery
from tessera.engine.ledger import State
from tessera.kube.access import Access
from tessera.kube.client import Client, Deletion
from tessera.kube.informer import Informer
from tessera.kube.kinds import LEASES, PODS
from tessera.kube.objects import Document
from tessera.kube.pods import CACHED_PODS
from tessera.model.annotations.keys import AGENT_LABEL, AGENT_NODE, ENDED
from tessera.scheduler.card_leases import CardLeases
from tessera.scheduler.nodes import CACHED_NODES
from tessera.scheduler.phases import Phases
from tessera.scheduler.world import World
from tests.scheduler.in_process import make_pod, nobody_lives, until
from tests.unit.scheduler.cluster import a_world

pytestmark = pytest.mark.asyncio
LEASE = "tessera-agent-left"
STARTED = {"running": {"startedAt": "2026-11-15T10:00:09Z"}}


@pytest_asyncio.fixture
async def world(access: Access) -> AsyncIterator[World]:
    """As the process keeps it, with all that recovers by itself."""
    async with Client(access) as client:
        world = a_world()
        pods, nodes = Informer(client, CACHED_PODS), Informer(client, CACHED_NODES)
        pods.subscribe(world.pod_changed)
        nodes.subscribe(world.node_changed)
        recovery = Recovery(
            client,
            world,
            Phases(world).offers,
            pods,
            nodes,
            leases=CardLeases(client, "default", nobody_lives),
            may_write=lambda: True,
            decides=lambda: True,
        )
        works = [asyncio.create_task(work) for work in (pods.run(), nodes.run(), *recovery.works())]
        await asyncio.gather(pods.synced(), nodes.synced())
        yield world
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


async def test_the_cards_are_free_once_the_agent_has_told_of_the_end(api: Client, namespace: str, world: World):
    marks = {"labels": {AGENT_LABEL: "left"}, "annotations": {AGENT_NODE: "left"}}
    await api.create(LEASES, {"metadata": {"name": LEASE, **marks}}, namespace="kube-system")
    pod = await make_pod(api, namespace, node="left")
    uid = pod["metadata"]["uid"]
    await until(lambda: holds_cards(world, uid))  # late, because by name
    await start_container(api, pod)
    started = await api.get(CACHED_PODS, "web", namespace=namespace)
    await until(lambda: world.lingers(started))  # once the agent's Lease is known
    await api.delete(PODS, "web", namespace=namespace, how=Deletion(grace_s=0))
    await until(lambda: (held := world.ledger.holding(uid)) is None or held.state is State.DRAINING)
    assert world.ledger.holding(uid) is not None, "its containers may still run"
    await api.patch(LEASES, LEASE, {"metadata": {"annotations": {ENDED: uid}}}, namespace="kube-system")
    await until(lambda: world.ledger.holding(uid) is None)


def holds_cards(world: World, uid: str) -> bool:
    """In the API too: what is only reserved for a pod goes with it."""
    held = world.ledger.holding(uid)
    return held is not None and held.state is State.BOUND and bool(held.allocation.shares)


async def start_container(api: Client, pod: Document) -> None:
    """What the kubelet tells of it."""
    said = {"name": "main", "ready": True, "restartCount": 0, "image": "x", "imageID": "x", "state": STARTED}
    await api.patch(
        PODS,
        pod["metadata"]["name"],
        {"status": {"phase": "Running", "containerStatuses": [said]}},
        namespace=pod["metadata"]["namespace"],
        subresource="status",
    )
