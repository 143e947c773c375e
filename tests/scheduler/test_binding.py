"""One Binding lands at most, and cards are free again only when none can: the real API server, a bad network."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import uuid4

import msgspec
import pytest
import pytest_asyncio

from tessera.engine.ledger import State
from tessera.errors import BindRefused, Conflict, NotFound
from tessera.kube.access import Access, find_access
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS, Selection
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.pod_verbs import bind_pod
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.kube.transport import Limits
from tessera.model.extender import BindingArgs
from tessera.scheduler.binding import Binder
from tessera.scheduler.nodes import CACHED_NODES
from tessera.scheduler.phases import Phases
from tessera.scheduler.world import World
from tests.kube.proxy import Proxy
from tests.unit.scheduler.cluster import a_world, node_document

pytestmark = pytest.mark.asyncio
NODE_NAMES = ("left", "right")


@pytest.fixture(scope="module")
def access(new_cluster) -> Iterator[Access]:
    cluster = new_cluster(controllers=False)
    yield find_access(cluster.kubeconfig)
    cluster.stop()


@pytest_asyncio.fixture
async def api(access: Access) -> AsyncIterator[Client]:
    """The API without anything in between."""
    async with Client(access) as client:
        for name in NODE_NAMES:
            try:
                await client.get(NODES, name)
            except NotFound:
                await client.create(NODES, node_document(name, "1xA100-SXM4-80GB"))
        yield client


@pytest_asyncio.fixture
async def namespace(api: Client) -> str:
    name = f"test-{uuid4().hex[:8]}"
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=name)
    return name


class Scheduler:
    """A binder, the world it decides over, and what it could not be sure of."""

    def __init__(self, client: Client, world: World, pods: Informer[Pod]) -> None:
        self.world, self.pods = world, pods
        self.lost: list[ObjectKey] = []
        self.leads = True
        self.remembered: Pod | None = None
        self.binder = Binder(
            client,
            world,
            Phases(world).offers,
            self.find_pod,
            may_write=lambda: self.leads,
            lost=self.lost.append,
            write_s=1.0,
        )

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


@asynccontextmanager
async def scheduler(access: Access, api: Client, namespace: str) -> AsyncIterator[Scheduler]:
    """Its writes go through `access`, its watches straight to the API."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(access, limits=Limits(request_s=1.0)))
        world = a_world()
        pods, nodes = Informer(api, CACHED_PODS, Selection(namespace=namespace)), Informer(api, CACHED_NODES)
        pods.subscribe(world.pod_changed)
        nodes.subscribe(world.node_changed)
        watching = [asyncio.create_task(informer.run()) for informer in (pods, nodes)]
        await asyncio.gather(pods.synced(), nodes.synced())
        yield Scheduler(client, world, pods)
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


async def make_pod(api: Client, namespace: str, name: str = "web", memory: str = "50000") -> Document:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory}
    container = {"name": "main", "image": "nothing", "resources": {"limits": limits}}
    spec = {"containers": [container], "tolerations": [{"operator": "Exists"}]}  # no controller makes the nodes ready
    body = {"metadata": {"name": name}, "spec": spec}
    return await api.create(PODS, body, namespace=namespace)


async def read_pod(api: Client, pod: Document) -> Document:
    return await api.get(PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])


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
        await ours.binder._read(ObjectKey(namespace, "web"))  # a connection is there
        proxy.withhold_answers()
        with pytest.raises(BindRefused, match="no answer within 1 s"):
            await ours.bind(pod, "left")
        assert ours.lost == [ObjectKey(namespace, "web")]
        assert ours.world.ledger.holding(uid) is not None
        proxy.resume()
        await ours.binder.clear_up(ObjectKey(namespace, "web"))
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
        await ours.binder.clear_up(ObjectKey(namespace, "web"))
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


def through(proxy: Proxy, access: Access) -> Access:
    trust = msgspec.structs.replace(access.trust, server_name="kubernetes")
    return msgspec.structs.replace(access, server=proxy.server, trust=trust)
