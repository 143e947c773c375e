"""The informer over a network that fails in every way a network can, and with servers that crash and forget."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tessera.errors import NotFound
from tessera.kube.access import Access
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.kinds import CONFIG_MAPS, Kind, Selection
from tessera.kube.listing import Page
from tessera.kube.objects import Document
from tessera.kube.transport import Limits
from tests.kube.conftest import Api
from tests.kube.informers import Counting, an_informer, change, drop, put, through
from tests.kube.listeners import following
from tests.kube.proxy import Proxy

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def far(proxy: Proxy, access: Access) -> AsyncIterator[Counting]:
    """A client whose connections the proxy can spoil."""
    limits = Limits(watch_silence_s=0.5, connect_s=1.0, request_s=2.0)
    async with Counting(through(proxy, access), limits=limits) as client:
        yield client


async def test_a_cut_connection_is_resumed_without_asking_for_everything(
    client: Client, far: Counting, proxy: Proxy, namespace: str
) -> None:
    await put(client, namespace, "a")
    async with following(an_informer(far, namespace)) as listener:
        for number in range(5):
            proxy.cut()
            await put(client, namespace, f"n{number}")
            await listener.hears("added", f"n{number}")

    assert listener.told == [("added", "a"), *(("added", f"n{number}") for number in range(5))]
    assert far.initial_streams == 1


async def test_what_happens_while_nobody_answers_is_heard_later(
    client: Client, far: Counting, proxy: Proxy, namespace: str
) -> None:
    await put(client, namespace, "a", "b")
    async with following(an_informer(far, namespace)) as listener:
        proxy.refuse()
        await change(client, namespace, "a")
        await drop(client, namespace, "b")
        await put(client, namespace, "b")
        proxy.accept()
        await listener.until(lambda told: told.count(("added", "b")) == 2)

    assert listener.told[2:] == [("changed", "a"), ("deleted", "b"), ("added", "b")]
    assert far.initial_streams == 1


async def test_a_stalled_connection_is_given_up(client: Client, far: Counting, proxy: Proxy, namespace: str) -> None:
    async with following(an_informer(far, namespace)) as listener:
        before = proxy.connections
        proxy.stall()
        await put(client, namespace, "a")
        while proxy.connections == before:
            await asyncio.sleep(0.01)
        proxy.resume()
        await listener.hears("added", "a")

    assert listener.told == [("added", "a")]
    assert far.initial_streams == 1


async def test_a_stalled_watch_is_left_without_waiting_for_the_other_end(
    far: Counting, proxy: Proxy, namespace: str
) -> None:
    async with far.watch(CONFIG_MAPS, Selection(namespace=namespace), initial_events=True) as events:
        await anext(events)
        proxy.stall()

    await asyncio.wait_for(proxy.has_lost_one.wait(), 10)


async def test_the_api_server_may_crash_and_come_back(api: Api, client: Client, namespace: str) -> None:
    await put(client, namespace, "a")
    async with following(an_informer(client, namespace)) as listener:
        await api.stop()
        await api.start()
        await put(client, namespace, "b")
        await listener.hears("added", "b")

    assert listener.told == [("added", "a"), ("added", "b")]


async def test_a_forgotten_position_tells_exactly_what_changed(
    api: Api, client: Client, far: Counting, proxy: Proxy, namespace: str
) -> None:
    await put(client, namespace, "same", "changed", "deleted", "made-again")
    async with following(an_informer(far, namespace)) as listener:
        proxy.refuse()
        await change(client, namespace, "changed")
        await drop(client, namespace, "deleted")
        await drop(client, namespace, "made-again")
        await put(client, namespace, "made-again", "new")
        await forget_the_past(api, client, namespace)
        proxy.accept()
        await listener.until(lambda told: len(told) >= 9)

    assert sorted(listener.told[4:]) == [
        ("added", "made-again"),
        ("added", "new"),
        ("changed", "changed"),
        ("deleted", "deleted"),
        ("deleted", "made-again"),
    ]
    assert listener.told.index(("deleted", "made-again")) < listener.told.index(("added", "made-again"), 4)
    assert far.initial_streams == 2


async def forget_the_past(api: Api, client: Client, namespace: str) -> None:
    """Compact etcd, and restart the API server, which remembers the last events too."""
    latest = (await client.list(CONFIG_MAPS, Selection(namespace=namespace))).resource_version
    await api.compact_etcd(latest)
    await api.stop()
    await api.start()


async def test_a_list_that_is_forgotten_half_way_is_read_at_once(api: Api, access: Access, namespace: str) -> None:
    class Forgetful(Client):
        async def list_page(self, kind: Kind[Any], *arguments: Any, **options: Any) -> Page[Any]:
            limits.append(options["limit"])
            page = await super().list_page(kind, *arguments, **options)
            if len(limits) == 1:
                await change(self, namespace, "a")
                await forget_the_past(api, self, namespace)
            return page

    limits: list[int] = []
    async with Forgetful(access) as client:
        await put(client, namespace, "a", "b", "c")
        page = await client.list(CONFIG_MAPS, Selection(namespace=namespace), page_size=1)

    assert [it["metadata"]["name"] for it in page.items] == ["a", "b", "c"]
    assert limits[-1] == 0


async def test_after_any_trouble_the_cache_is_what_the_server_has(
    client: Client, far: Counting, proxy: Proxy, namespace: str
) -> None:
    chance = random.Random(7)
    seen: dict[str, Document | None] = {}
    gaps: list[str] = []

    def follow(heard: Change[Document]) -> None:
        if heard.before is not seen.get(heard.key.name):
            gaps.append(heard.key.name)
        seen[heard.key.name] = heard.after

    informer = an_informer(far, namespace)
    informer.subscribe(follow)
    async with following(informer) as listener:
        for number in range(150):
            await do_something(client, namespace, f"n{chance.randrange(8)}", str(number))
            if chance.random() < 0.15:
                chance.choice([proxy.cut, proxy.refuse, proxy.stall, proxy.accept, proxy.resume])()
        proxy.accept()
        proxy.resume()
        await put(client, namespace, "last")
        await listener.hears("added", "last")

    truth = await client.list(CONFIG_MAPS, Selection(namespace=namespace))
    assert gaps == []
    assert versions(list(informer)) == versions(list(truth.items))
    assert versions([thing for thing in seen.values() if thing]) == versions(list(truth.items))


async def do_something(client: Client, namespace: str, name: str, value: str) -> None:
    """Make the object, else change it, and every third time delete it."""
    try:
        await (drop(client, namespace, name) if int(value) % 3 == 0 else change(client, namespace, name, value))
    except NotFound:
        await put(client, namespace, name)


def versions(things: list[Document]) -> dict[str, str]:
    return {thing["metadata"]["name"]: thing["metadata"]["resourceVersion"] for thing in things}
