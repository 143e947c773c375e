"""What binds, allocates late and checks, in the test's own process: informers and a world, without HTTP around them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec

from tessera.kube.access import Access
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import PODS, Selection
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.kube.reconciler import Again
from tessera.kube.transport import Limits
from tessera.model.card_leases import CardRef
from tessera.model.extender import BindingArgs
from tessera.model.requests import PodRef
from tessera.scheduler.binding import Binder
from tessera.scheduler.card_leases import CardLeases
from tessera.scheduler.commits import Commits
from tessera.scheduler.drift import Drift
from tessera.scheduler.late import LateAllocator
from tessera.scheduler.nodes import CACHED_NODES
from tessera.scheduler.phases import Phases
from tessera.scheduler.world import World
from tests.unit.scheduler.cluster import a_world

PATIENCE_S = 10
NODE_NAMES = ("left", "right")
PLAN = "1xA100-SXM4-80GB"


async def nobody_lives(_: PodRef, __: CardRef) -> bool:
    return False


class Scheduler:
    """A binder and what mends, the world they decide over, and what they could not be sure of."""

    def __init__(self, client: Client, world: World, pods: Informer[Pod]) -> None:
        self.world, self.pods = world, pods
        self.lost: list[ObjectKey] = []
        self.lacking: list[ObjectKey] = []
        self.refused: list[str] = []
        self.leads = True
        self.remembered: Pod | None = None
        self.watching: list[asyncio.Task[None]] = []
        offers = Phases(world).offers
        leases = CardLeases(client, "default", nobody_lives)
        self.commits = Commits(
            client, world, offers, leases=leases, may_write=lambda: self.leads, lost=self.lost.append, write_s=1.0
        )
        self.binder = Binder(self.commits, world, self.find_pod)
        self.late = LateAllocator(self.commits, world, self.find_pod, may_decide=lambda: self.leads, grace_s=0.1)
        self.late.refused_late = self._note_refusal
        self.drift = Drift(client, world, is_ready=lambda: True, settle_s=0.1)
        world.lacks_cards = self.lacking.append

    async def stop_listening(self) -> None:
        """From now on nothing that happens in the cluster is told."""
        for task in self.watching:
            task.cancel()
        await asyncio.gather(*self.watching, return_exceptions=True)

    def _note_refusal(self, _: PodRef, sentence: str) -> None:
        self.refused.append(sentence)

    def find_pod(self, key: ObjectKey) -> Pod | None:
        return self.remembered or self.pods.get(key)

    def remember(self, pod: Document) -> None:
        """Do not hear of the pod any more."""
        self.remembered = CACHED_PODS.decode(msgspec.json.encode(pod), "web")

    async def bind(self, pod: Document, node: str) -> None:
        metadata = pod["metadata"]
        await self.binder.bind(
            BindingArgs(
                pod_name=metadata["name"], pod_namespace=metadata["namespace"], pod_uid=metadata["uid"], node=node
            )
        )

    async def allocate_late(self, pod: Document) -> Again | None:
        """As a reconciler would, once the grace is over."""
        key = key_of(pod)
        await until(lambda: key in self.lacking)
        outcome = await self.late.allocate(key)
        if isinstance(outcome, Again):
            await asyncio.sleep(outcome.after_s)
            outcome = await self.late.allocate(key)
        return outcome

    def seen(self, pod: Document) -> Any:
        """The pod as the last event told it."""
        return self.pods.get(key_of(pod))

    def held(self, pod: Document) -> Any:
        return self.world.ledger.holding(pod["metadata"]["uid"])


@asynccontextmanager
async def scheduler(access: Access, api: Client, namespace: str = "") -> AsyncIterator[Scheduler]:
    """Its writes go through `access`, its watches straight to the API."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(access, limits=Limits(request_s=1.0)))
        world = a_world()
        pods, nodes = Informer(api, CACHED_PODS, Selection(namespace=namespace)), Informer(api, CACHED_NODES)
        ours = Scheduler(client, world, pods)
        pods.subscribe(world.pod_changed)
        nodes.subscribe(world.node_changed)
        ours.watching = [asyncio.create_task(informer.run()) for informer in (pods, nodes)]
        await asyncio.gather(pods.synced(), nodes.synced())
        yield ours
        await ours.stop_listening()


def key_of(pod: Document) -> ObjectKey:
    return ObjectKey(pod["metadata"]["namespace"], pod["metadata"]["name"])


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.01)


async def make_pod(
    api: Client, namespace: str, name: str = "web", memory: str = "50000", node: str | None = None
) -> Document:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory}
    container = {"name": "main", "image": "nothing", "resources": {"limits": limits}}
    spec = {"containers": [container], "tolerations": [{"operator": "Exists"}]}  # no controller makes the nodes ready
    if node:
        spec["nodeName"] = node
    body = {"metadata": {"name": name}, "spec": spec}
    return await api.create(PODS, body, namespace=namespace)


async def read_pod(api: Client, pod: Document) -> Document:
    return await api.get(PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])


def through(proxy: Any, access: Access) -> Access:
    trust = msgspec.structs.replace(access.trust, server_name="kubernetes")
    return msgspec.structs.replace(access, server=proxy.server, trust=trust)
