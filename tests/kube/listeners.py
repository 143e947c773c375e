"""A handler that keeps what it was told, and lets a test wait for it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tessera.kube.caching import Change
from tessera.kube.informer import Informer
from tessera.kube.objects import Document

Summary = tuple[str, str]


class Listener:
    """What happened, as `("added", "web-0")`."""

    def __init__(self) -> None:
        self.told: list[Summary] = []
        self._stirred = asyncio.Event()

    def __call__(self, change: Change[Document]) -> None:
        what = "deleted" if change.after is None else "added" if change.before is None else "changed"
        self.told.append((what, change.key.name))
        self._stirred.set()

    async def until(self, condition: Callable[[list[Summary]], bool]) -> None:
        while not condition(self.told):
            self._stirred.clear()
            await self._stirred.wait()

    async def hears(self, what: str, name: str) -> None:
        await self.until(lambda told: (what, name) in told)


@asynccontextmanager
async def following(informer: Informer[Document]) -> AsyncIterator[Listener]:
    """Run the informer until it is synced, then for as long as the block lasts."""
    listener = Listener()
    informer.subscribe(listener)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(informer.run())
        await informer.synced()
        try:
            yield listener
        finally:
            running.cancel()
