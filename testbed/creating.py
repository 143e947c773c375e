"""Many objects at once, as fast as the API server takes them."""

import asyncio
from collections.abc import Iterable
from typing import Any

from tessera.kube.client import Client
from tessera.kube.kinds import Kind
from tessera.kube.objects import Document

AT_ONCE = 32


async def create_all(client: Client, kind: Kind[Any], documents: Iterable[Document], *, namespace: str = "") -> None:
    waiting = iter(documents)

    async def work() -> None:
        for document in waiting:
            await client.create(kind, document, namespace=namespace)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work())
