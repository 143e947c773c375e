"""The informer on a real API server, while nothing fails but what it is told."""

import asyncio
from collections.abc import Iterator
from typing import Literal

import msgspec
import pytest

from tessera.kube.access import Access
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, Selection, kind_of
from tessera.kube.objects import Document, ObjectKey, ObjectMeta
from tessera.kube.reconciler import Reconciler
from tessera.kube.watching import Undecodable
from testbed.fixtures import NewCluster
from tests.kube.conftest import Api
from tests.kube.informers import Counting, an_informer, change, drop, put
from tests.kube.listeners import Listener, following
from tests.kube.manifests import a_config_map

pytestmark = pytest.mark.asyncio


async def test_it_begins_with_what_is_there_and_follows(client: Client, namespace: str) -> None:
    await put(client, namespace, "a", "b")

    async with following(an_informer(client, namespace)) as listener:
        await change(client, namespace, "a")
        await drop(client, namespace, "b")
        await listener.hears("deleted", "b")

    assert listener.told == [("added", "a"), ("added", "b"), ("changed", "a"), ("deleted", "b")]


async def test_everything_is_asked_for_in_one_stream(access: Access, namespace: str) -> None:
    async with Counting(access) as client, following(an_informer(client, namespace)):
        pass

    assert (client.initial_streams, client.lists) == (1, 0)


@pytest.fixture(scope="module")
def older_api(new_cluster: NewCluster) -> Iterator[Api]:
    """An API server that does not stream initial events."""
    with new_cluster(controllers=False, apiserver_flags={"feature-gates": "WatchList=false"}) as cluster:
        yield Api(cluster)


async def test_a_server_that_does_not_stream_everything_is_listed(older_api: Api) -> None:
    async with Counting(older_api.access) as client:
        await put(client, "default", "a")
        async with following(an_informer(client, "default")) as listener:
            await put(client, "default", "b")
            await listener.hears("added", "b")

    assert (client.initial_streams, client.lists) == (1, 1)
    assert listener.told == [("added", "a"), ("added", "b")]


async def test_what_leaves_the_selection_is_deleted(client: Client, namespace: str) -> None:
    labelled = {**a_config_map("a"), "metadata": {"name": "a", "labels": {"team": "one"}}}
    await client.create(CONFIG_MAPS, labelled, namespace=namespace)
    informer = Informer(client, CONFIG_MAPS, Selection(namespace=namespace, labels="team=one"))

    async with following(informer) as listener:
        await client.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"team": "two"}}}, namespace=namespace)
        await listener.hears("deleted", "a")

    assert listener.told == [("added", "a"), ("deleted", "a")]


async def test_a_slow_consumer_does_not_hold_up_the_cache(client: Client, namespace: str) -> None:
    may_finish, looked = asyncio.Event(), list[tuple[str, str]]()

    async def look(key: ObjectKey) -> None:
        await may_finish.wait()
        found: Document | None = informer.get(key)
        looked.append((key.name, found["data"]["x"] if found else ""))

    informer = an_informer(client, namespace)
    reconciler = Reconciler("slow", look, workers=1)
    informer.subscribe(lambda heard: reconciler.mark(heard.key))
    await put(client, namespace, "a")
    async with asyncio.TaskGroup() as group:
        group.create_task(reconciler.run())
        async with following(informer) as listener:
            for number in range(100):
                await change(client, namespace, "a", str(number))
            await listener.until(lambda told: len(told) == 101)
            may_finish.set()
            while reconciler.queue.in_hand or len(reconciler.queue):
                await asyncio.sleep(0)
            reconciler.stop()

    assert looked[-1] == ("a", "99")
    assert len(looked) <= 2


class Tidy(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: dict[str, Literal["tidy"]] | None = None


async def test_an_odd_object_is_reported_and_the_others_are_followed(client: Client, namespace: str) -> None:
    odd: list[Undecodable] = []
    await client.create(CONFIG_MAPS, a_config_map("odd", x="untidy"), namespace=namespace)
    await client.create(CONFIG_MAPS, a_config_map("a", x="tidy"), namespace=namespace)
    informer = an_informer(client, namespace, CONFIG_MAPS.decoded_as(Tidy), on_undecodable=odd.append)

    async with following(informer) as listener:
        await change(client, namespace, "a", "untidy")
        await client.create(CONFIG_MAPS, a_config_map("b", x="tidy"), namespace=namespace)
        await listener.hears("added", "b")
        kept = informer.get(ObjectKey(namespace, "a"))

    assert [it.identity.key.name for it in odd] == ["odd", "a"]
    assert kept is not None
    assert kept.data == {"x": "tidy"}


async def test_a_handler_that_fails_does_not_end_the_informer(client: Client, namespace: str) -> None:
    def fail(_: Change[Document]) -> None:
        raise ValueError("broken handler")

    informer = an_informer(client, namespace)
    informer.subscribe(fail)
    async with following(informer) as listener:
        await put(client, namespace, "a", "b")
        await listener.hears("added", "b")


async def test_who_subscribes_late_hears_what_is_there(client: Client, namespace: str) -> None:
    await put(client, namespace, "a", "b")
    informer, late = an_informer(client, namespace), Listener()

    async with following(informer):
        informer.subscribe(late)

    assert sorted(late.told) == [("added", "a"), ("added", "b")]


async def test_a_kind_may_be_served_later(client: Client, namespace: str) -> None:
    things = kind_of("tessera.test", "v1", "things", "Thing")
    informer = an_informer(client, namespace, things)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(informer.run())
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, a_definition())
        await informer.synced()
        running.cancel()
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, "things.tessera.test")

    assert len(informer) == 0


def a_definition() -> Document:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": "things.tessera.test"},
        "spec": {
            "group": "tessera.test",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def test_silence_is_measured(client: Client, namespace: str) -> None:
    informer = an_informer(client, namespace)
    before = informer.silent_s

    async with following(informer):
        silent_s = informer.silent_s

    assert before is None
    assert silent_s is not None
