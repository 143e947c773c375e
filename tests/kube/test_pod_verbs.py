"""Binding, eviction and logs, on a real API server."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tessera.errors import BadRequest, Conflict, NotFound, TooManyRequests
from tessera.kube.client import Client
from tessera.kube.kinds import NODES, POD_DISRUPTION_BUDGETS, PODS
from tessera.kube.objects import ObjectKey
from tessera.kube.pod_verbs import LogOptions, bind_pod, evict_pod, follow_log, read_log
from tests.kube.conftest import Api
from tests.kube.manifests import RUNNING, a_pod

pytestmark = pytest.mark.asyncio


async def test_a_binding_carries_annotations_in_the_same_write(client: Client, namespace: str) -> None:
    made = await client.create(PODS, a_pod("a"), namespace=namespace)
    meta = made["metadata"]

    await bind_pod(
        client,
        ObjectKey(namespace, "a"),
        "gpu-1",
        annotations={"tessera.io/cards": "0,1"},
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
    )

    pod = await client.get(PODS, "a", namespace=namespace)
    assert (pod["spec"]["nodeName"], pod["metadata"]["annotations"]) == ("gpu-1", {"tessera.io/cards": "0,1"})


async def test_a_pod_is_bound_once(client: Client, namespace: str) -> None:
    await client.create(PODS, a_pod("a"), namespace=namespace)
    await bind_pod(client, ObjectKey(namespace, "a"), "gpu-1")

    with pytest.raises(Conflict, match="already assigned"):
        await bind_pod(client, ObjectKey(namespace, "a"), "gpu-2")


async def test_a_decision_about_an_older_state_of_a_pod_does_not_land(client: Client, namespace: str) -> None:
    made = await client.create(PODS, a_pod("a"), namespace=namespace)
    await client.patch(PODS, "a", {"metadata": {"labels": {"fenced": "yes"}}}, namespace=namespace)
    old = made["metadata"]["resourceVersion"]

    with pytest.raises(Conflict):
        await bind_pod(client, ObjectKey(namespace, "a"), "gpu-1", resource_version=old)
    with pytest.raises(Conflict):
        await bind_pod(client, ObjectKey(namespace, "a"), "gpu-1", uid="another")


async def test_an_eviction_asks_the_disruption_budget(client: Client, namespace: str) -> None:
    await client.create(PODS, a_pod("a", app="a"), namespace=namespace)
    await client.patch(PODS, "a", RUNNING, namespace=namespace, subresource="status")
    await make_budget(client, namespace)
    await allow_disruptions(client, namespace, 0)

    with pytest.raises(TooManyRequests, match="disruption budget"):
        await evict_pod(client, ObjectKey(namespace, "a"))
    await allow_disruptions(client, namespace, 1)
    await evict_pod(client, ObjectKey(namespace, "a"), dry_run=True)
    await evict_pod(client, ObjectKey(namespace, "a"), grace_s=0)

    with pytest.raises(NotFound):
        await client.get(PODS, "a", namespace=namespace)


async def make_budget(client: Client, namespace: str) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    await client.create(POD_DISRUPTION_BUDGETS, {"metadata": {"name": "b"}, "spec": spec}, namespace=namespace)


async def allow_disruptions(client: Client, namespace: str, count: int) -> None:
    """What the disruption controller would write; none runs here."""
    figures = {"disruptionsAllowed": count, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    status = {"status": {**figures, "observedGeneration": 1}}
    await client.patch(POD_DISRUPTION_BUDGETS, "b", status, namespace=namespace, subresource="status")


async def test_an_eviction_of_another_incarnation_is_a_conflict(client: Client, namespace: str) -> None:
    await client.create(PODS, a_pod("a"), namespace=namespace)

    with pytest.raises(Conflict):
        await evict_pod(client, ObjectKey(namespace, "a"), uid="another")


async def test_a_pod_without_a_node_has_an_empty_log(client: Client, namespace: str) -> None:
    await client.create(PODS, a_pod("a"), namespace=namespace)

    assert await read_log(client, ObjectKey(namespace, "a")) == ""
    with pytest.raises(BadRequest, match="container other is not valid"):
        await read_log(client, ObjectKey(namespace, "a"), LogOptions(container="other"))


class Kubelet:
    """Answers for logs as a kubelet does, line by line as the test writes them."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def serve_log(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(dict(request.query))
        response = web.StreamResponse()
        await response.prepare(request)
        while (line := await self.lines.get()) is not None:
            await response.write(line)
        return response


@asynccontextmanager
async def a_kubelet(api: Api, client: Client, node: str) -> AsyncIterator[Kubelet]:
    kubelet = Kubelet()
    application = web.Application()
    application.router.add_get("/containerLogs/{pod:.*}", kubelet.serve_log)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*api.serving_certificate())
    site = web.TCPSite(runner, api.host_address, 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    await client.create(NODES, {"metadata": {"name": node}})
    status = {
        "addresses": [{"type": "InternalIP", "address": api.host_address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    await client.patch(NODES, node, {"status": status}, subresource="status")
    try:
        yield kubelet
    finally:
        await client.delete(NODES, node)
        await runner.cleanup()


async def test_a_log_is_read_with_its_options(api: Api, client: Client, namespace: str) -> None:
    async with a_kubelet(api, client, f"{namespace}-node") as kubelet:
        await a_pod_on(client, namespace, f"{namespace}-node")
        for line in (b"one\n", b"two", None):
            kubelet.lines.put_nowait(line)

        options = LogOptions(container="main", previous=True, timestamps=True, tail_lines=2, since_s=60)
        text = await read_log(client, ObjectKey(namespace, "a"), options)

    assert text == "one\ntwo"
    assert kubelet.asked == [
        {"previous": "true", "timestamps": "true", "tailLines": "2", "sinceSeconds": "60"},
    ]


async def test_a_log_is_followed_as_it_is_written(api: Api, client: Client, namespace: str) -> None:
    async with a_kubelet(api, client, f"{namespace}-node") as kubelet:
        await a_pod_on(client, namespace, f"{namespace}-node")
        kubelet.lines.put_nowait(b"one\nt")
        got: list[str] = []
        async with follow_log(client, ObjectKey(namespace, "a")) as lines:
            got.append(await anext(lines))
            for line in (b"wo\n", b"rest", None):
                kubelet.lines.put_nowait(line)
            got += [line async for line in lines]

    assert got == ["one", "two", "rest"]


async def a_pod_on(client: Client, namespace: str, node: str) -> None:
    await client.create(PODS, a_pod("a"), namespace=namespace)
    await bind_pod(client, ObjectKey(namespace, "a"), node)
    await client.patch(PODS, "a", RUNNING, namespace=namespace, subresource="status")
