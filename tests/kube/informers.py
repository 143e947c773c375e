"""What the tests of the informer share: a client that counts, and short words for changes."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from tessera.kube.access import Access
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import CONFIG_MAPS, EVERYTHING, Kind, Selection
from tessera.kube.listing import Page
from tessera.kube.timing import Backoff
from tessera.kube.transport import Limits
from tessera.kube.watching import WatchEvent
from tests.kube.manifests import a_config_map
from tests.kube.proxy import Proxy

HASTY = Backoff(first_s=0.02, most_s=0.1)


class Counting(Client):
    """A client that notes how often everything was asked for."""

    def __init__(self, access: Access, *, limits: Limits | None = None) -> None:
        super().__init__(access, limits=limits)
        self.initial_streams = 0
        self.lists = 0

    @asynccontextmanager
    async def watch(
        self, kind: Kind[Any], selection: Selection = EVERYTHING, **options: Any
    ) -> AsyncGenerator[AsyncIterator[WatchEvent[Any]]]:
        self.initial_streams += bool(options.get("initial_events"))
        async with super().watch(kind, selection, **options) as events:
            yield events

    async def list(self, kind: Kind[Any], *arguments: Any, **options: Any) -> Page[Any]:
        self.lists += 1
        return await super().list(kind, *arguments, **options)


def through(proxy: Proxy, access: Access) -> Access:
    return msgspec.structs.replace(access, server=proxy.server)


def an_informer(client: Client, namespace: str, kind: Kind[Any] = CONFIG_MAPS, **options: Any) -> Informer[Any]:
    return Informer(client, kind, Selection(namespace=namespace), backoff=HASTY, **options)


async def put(client: Client, namespace: str, *names: str) -> None:
    for name in names:
        await client.create(CONFIG_MAPS, a_config_map(name), namespace=namespace)


async def change(client: Client, namespace: str, name: str, value: str = "new") -> None:
    await client.patch(CONFIG_MAPS, name, {"data": {"x": value}}, namespace=namespace)


async def drop(client: Client, namespace: str, name: str) -> None:
    await client.delete(CONFIG_MAPS, name, namespace=namespace)
