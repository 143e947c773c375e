"""The informer against a real API server that holds ten thousand pods; takes about a minute and wants the testbed.

Floor, in the same run: `json.loads` of the same pods, one by one. Beside the time of the client stands the time on the
wall, which is mostly the API server's: it encodes each pod.
"""

import asyncio
import json
import time
from collections.abc import Coroutine
from typing import Any

import msgspec
import structlog

from benchmarks.kube_pods import a_pod
from benchmarks.memory import resident_bytes
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import NAMESPACES, PODS, SERVICE_ACCOUNTS
from tessera.kube.listing import Page
from tessera.kube.objects import Document
from tessera.kube.pods import CACHED_PODS, Pod
from testbed.cluster import Cluster
from testbed.creating import create_all

COUNT = 10_000
NAMESPACE = "bench"


def main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with Cluster(controllers=False) as cluster:
        asyncio.run(_measure(cluster))


async def _measure(cluster: Cluster) -> None:
    access = find_access(cluster.kubeconfig)
    async with Client(access) as client:
        print(f"API server {(await client.server_version())['gitVersion']}, {COUNT} pods")
        await _make_pods(client)
        await _print_floor(client)
        before = resident_bytes()
        informer = Informer(client, CACHED_PODS)
        await _print_times("fill the cache by stream", _fill(informer))
        print(f"  memory of a cached pod           {(resident_bytes() - before) / len(informer):8.0f} bytes")
        await _print_times("list in pages of 500", _list(client, page_size=500))
        await _print_times("list at once", _list(client, page_size=0))


async def _make_pods(client: Client) -> None:
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=NAMESPACE)
    began = time.perf_counter()
    await create_all(client, PODS, map(_creatable, range(COUNT)), namespace=NAMESPACE)
    print(f"  pods created                     {COUNT / (time.perf_counter() - began):8.0f} each second")


def _creatable(number: int) -> Document:
    pod = a_pod(number)
    metadata = {name: pod["metadata"][name] for name in ("name", "labels", "annotations", "ownerReferences")}
    dropped = ("nodeName", "priority", "priorityClassName")
    spec = {name: value for name, value in pod["spec"].items() if name not in dropped}
    return {"metadata": metadata, "spec": spec}


async def _print_floor(client: Client) -> None:
    page = await client.list(PODS.decoded_as(msgspec.Raw))
    texts = [bytes(item) for item in page.items]
    began = time.process_time()
    for text in texts:
        json.loads(text)
    cpu_s = time.process_time() - began
    print(f"  floor: json.loads of each pod    {cpu_s:8.3f} s, {sum(map(len, texts)) / COUNT:.0f} bytes each")


async def _print_times(what: str, work: Coroutine[Any, Any, int]) -> None:
    began, cpu_began = time.perf_counter(), time.process_time()
    count = await work
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    assert count >= COUNT
    print(f"  {what:<32} {cpu_s:8.3f} s of the client, {wall_s:6.3f} s on the wall")


async def _fill(informer: Informer[Pod]) -> int:
    running = asyncio.create_task(informer.run())
    await informer.synced()
    running.cancel()
    return len(informer)


async def _list(client: Client, *, page_size: int) -> int:
    page: Page[Pod] = await client.list(CACHED_PODS, page_size=page_size)
    return len(page.items)


if __name__ == "__main__":
    main()
