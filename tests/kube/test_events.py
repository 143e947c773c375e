"""Events on a real API server, as `kubectl describe` shows them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from tessera.kube.access import Access
from tessera.kube.client import Client
from tessera.kube.event_series import COMBINED, MOST_SIMILAR, ObjectReference
from tessera.kube.events import MOST_WAITING, Recorder
from tessera.kube.kinds import EVENTS, PODS, Selection
from tessera.kube.objects import Document
from tessera.kube.timing import Backoff
from tests.kube.conftest import Api
from tests.kube.manifests import a_pod
from tests.kube.proxy import Proxy

pytestmark = pytest.mark.asyncio
HASTY = Backoff(first_s=0.01, most_s=0.05)


@asynccontextmanager
async def recording(client: Client) -> AsyncIterator[Recorder]:
    """A recorder at work; at the end of the block all that was told is written."""
    recorder = Recorder(client, component="tessera-test", host="here", backoff=HASTY)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(recorder.run())
        yield recorder
        await recorder.drained()
        task.cancel()


async def make_pod(client: Client, namespace: str) -> ObjectReference:
    pod = await client.create(PODS, a_pod("web-0"), namespace=namespace)
    return ObjectReference(kind="Pod", name="web-0", namespace=namespace, uid=pod["metadata"]["uid"])


async def events_in(client: Client, namespace: str) -> list[Document]:
    return list((await client.list(EVENTS, Selection(namespace=namespace))).items)


async def test_equal_events_are_counted_as_describe_shows(api: Api, client: Client, namespace: str) -> None:
    pod = await make_pod(client, namespace)
    async with recording(client) as recorder:
        for _ in range(3):
            recorder.warning(pod, "CardMemory", "no card has 24000 MiB free")
        recorder.normal(pod, "Bound", "on gpu-1")

    described = api.kubectl("describe", "pod", "web-0", "--namespace", namespace)

    shown = [line.split() for line in described.splitlines() if "tessera-test" in line]
    assert sorted((line[0], line[1]) for line in shown) == [("Normal", "Bound"), ("Warning", "CardMemory")]
    assert "(x3 over" in described
    assert "no card has 24000 MiB free" in described


async def test_similar_events_become_one(client: Client, namespace: str) -> None:
    pod = await make_pod(client, namespace)
    async with recording(client) as recorder:
        for number in range(MOST_SIMILAR + 5):
            recorder.warning(pod, "Failed", f"try {number}")

    events = await events_in(client, namespace)
    combined = [(event["message"], event["count"]) for event in events if event["message"].startswith(COMBINED)]
    assert len(events) == MOST_SIMILAR + 1
    assert combined == [(f"{COMBINED}try {MOST_SIMILAR + 4}", 5)]


async def test_a_pod_that_talks_without_end_is_cut_short(client: Client, namespace: str) -> None:
    pod = await make_pod(client, namespace)
    async with recording(client) as recorder:
        for _ in range(100):
            recorder.warning(pod, "Failed", "again")

    events = await events_in(client, namespace)
    assert [event["count"] for event in events] == [25]
    assert (recorder.counts.written, recorder.counts.limited) == (25, 75)


async def test_an_event_that_is_gone_is_written_anew(client: Client, namespace: str) -> None:
    pod = await make_pod(client, namespace)
    async with recording(client) as recorder:
        recorder.normal(pod, "Bound", "on gpu-1")
        await recorder.drained()
        await client.delete_collection(EVENTS, Selection(namespace=namespace))
        recorder.normal(pod, "Bound", "on gpu-1")

    assert [event["count"] for event in await events_in(client, namespace)] == [1]


async def test_an_event_about_a_node_is_in_the_default_namespace(client: Client, namespace: str) -> None:
    node = ObjectReference(kind="Node", name=f"{namespace}-node", uid=namespace)
    async with recording(client) as recorder:
        recorder.normal(node, "Ready", "x" * 2000)

    chosen = Selection(namespace="default", fields=f"involvedObject.uid={namespace}")
    found = (await client.list(EVENTS, chosen)).items
    assert [len(event["message"].encode()) for event in found] == [1024]


async def test_an_outage_neither_blocks_nor_grows_and_is_made_up_for(
    access: Access, client: Client, proxy: Proxy, namespace: str
) -> None:
    pod = await make_pod(client, namespace)
    async with Client(msgspec.structs.replace(access, server=proxy.server)) as far:
        proxy.refuse()
        async with recording(far) as recorder:
            recorder.normal(pod, "First", "before")
            for number in range(MOST_WAITING + 500):
                recorder.normal(ObjectReference(kind="Pod", name=f"p{number}", namespace=namespace), "Next", "x")
            assert recorder.counts.dropped == 501
            proxy.accept()

    reasons = [event["reason"] for event in await events_in(client, namespace)]
    assert (reasons.count("First"), len(reasons)) == (1, MOST_WAITING)


async def test_an_event_that_is_refused_does_not_stop_the_next(client: Client, namespace: str) -> None:
    pod = await make_pod(client, namespace)
    async with recording(client) as recorder:
        recorder.normal(ObjectReference(kind="Pod", name="x", namespace="no-such-namespace"), "Lost", "x")
        recorder.normal(pod, "Bound", "on gpu-1")

    assert (recorder.counts.failed, recorder.counts.written) == (1, 1)
