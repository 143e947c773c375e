"""The runtime as a node of a real API server: pods come from there, and what becomes of them goes back."""

import asyncio
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
import pytest_asyncio

from tessera.embedded.runtime.logs import LogRequest
from tessera.embedded.runtime.node_loop import KubeSources, NodeLoop
from tessera.embedded.runtime.runtime import Runtime, Wiring
from tessera.kube.access import find_access
from tessera.kube.client import Client, Deletion
from tessera.kube.events import Recorder
from tessera.kube.informer import Informer
from tessera.kube.kinds import CONFIG_MAPS, EVENTS, NAMESPACES, PODS, SERVICE_ACCOUNTS, Selection
from tessera.kube.watching import EventType, ObjectEvent
from tests.embedded.runtime.node import FOREVER, QUICK, has_ended, is_ready

pytestmark = pytest.mark.asyncio
NODE = "node-a"


@pytest.fixture(scope="module")
def access(new_cluster):
    cluster = new_cluster(controllers=False)
    yield find_access(cluster.kubeconfig)
    cluster.stop()


@asynccontextmanager
async def node_of(client, directory):
    """An engine's part that runs pods, until the block ends."""
    informer, recorder = Informer(client, PODS), Recorder(client, component="tessera-runtime", host=NODE)
    loop = NodeLoop(client, informer, recorder, [NODE])
    wiring = Wiring(sources=KubeSources(client), changed=loop.changed, hear=loop.hear)
    runtime = await Runtime.open(directory, wiring, settings=QUICK)
    tasks = [asyncio.ensure_future(work) for work in (informer.run(), recorder.run(), loop.run(runtime))]
    try:
        yield runtime
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await runtime.close()


class Cluster:
    def __init__(self, client, namespace):
        self.client = client
        self.namespace = namespace

    async def create(self, script, **spec):
        container = {"name": "main", "image": "tessera.local/machine", "command": ["sh", "-c", script]}
        container |= spec.pop("container", {})
        placed = {"nodeName": NODE, "restartPolicy": "Never", "terminationGracePeriodSeconds": 5}
        body = {"metadata": {"name": "worker"}, "spec": placed | {"containers": [container]} | spec}
        return await self.client.create(PODS, body, namespace=self.namespace)

    async def wait(self, condition):
        selection = Selection(namespace=self.namespace, fields="metadata.name=worker")
        async with asyncio.timeout(30), self.client.watch(PODS, selection, initial_events=True) as events:
            async for event in events:
                if isinstance(event, ObjectEvent) and condition(event.object):
                    return event.object
        raise AssertionError("the watch ended")


@pytest_asyncio.fixture
async def cluster(access):
    async with Client(access) as client:
        name = f"test-{uuid4().hex[:8]}"
        await client.create(NAMESPACES, {"metadata": {"name": name}})
        await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=name)
        await client.create(
            CONFIG_MAPS, {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "authority"}}, namespace=name
        )
        yield Cluster(client, name)
        await client.delete_collection(PODS, Selection(namespace=name), how=Deletion(grace_s=0))


async def test_a_pod_runs_and_its_end_is_told(cluster, tmp_path):
    async with node_of(cluster.client, tmp_path) as runtime:
        await cluster.create("cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; exit 3")
        pod = await cluster.wait(lambda pod: has_ended(pod["status"]))
        container = runtime.container(pod["metadata"]["uid"], "main")
        assert container is not None
        assert [piece async for piece in runtime.read_log(container, LogRequest())] == [cluster.namespace.encode()]
        assert pod["status"]["phase"] == "Failed"
        assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
        kinds = {condition["type"] for condition in pod["status"]["conditions"]}
        assert {"Initialized", "Ready", "ContainersReady"} <= kinds


async def test_a_deleted_pod_goes_when_it_has_stopped_and_shows_its_end(cluster, tmp_path):
    async with node_of(cluster.client, tmp_path) as runtime:
        await cluster.create(FOREVER)
        running = await cluster.wait(lambda pod: is_ready(pod["status"]))
        selection = Selection(namespace=cluster.namespace)
        version = running["metadata"]["resourceVersion"]
        async with asyncio.timeout(30), cluster.client.watch(PODS, selection, resource_version=version) as events:
            await cluster.client.delete(PODS, "worker", namespace=cluster.namespace)
            gone = await anext(
                one async for one in events if isinstance(one, ObjectEvent) and one.type is EventType.DELETED
            )
        assert "terminated" in gone.object["status"]["containerStatuses"][0]["state"]
        async with asyncio.timeout(30):
            while runtime.status(running["metadata"]["uid"]) is not None:
                await asyncio.sleep(0.02)


async def test_events_tell_that_nothing_was_pulled(cluster, tmp_path):
    async with node_of(cluster.client, tmp_path):
        await cluster.create("true")
        await cluster.wait(lambda pod: has_ended(pod["status"]))
        async with asyncio.timeout(30):
            while not any("is not pulled" in one["message"] for one in await told(cluster)):
                await asyncio.sleep(0.05)


async def test_a_new_engine_goes_on_with_the_pods_of_a_former_one(cluster, tmp_path):
    async with node_of(cluster.client, tmp_path):
        await cluster.create(FOREVER, restartPolicy="Always")
        first = await cluster.wait(lambda pod: is_ready(pod["status"]))
    async with node_of(cluster.client, tmp_path):
        again = await cluster.wait(lambda pod: restarts(pod) == 1 and is_ready(pod["status"]))
        assert again["status"]["podIP"] == first["status"]["podIP"]
        assert again["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137


def restarts(pod):
    return sum(one["restartCount"] for one in pod["status"].get("containerStatuses", ()))


async def told(cluster):
    return (await cluster.client.list(EVENTS, Selection(namespace=cluster.namespace))).items
