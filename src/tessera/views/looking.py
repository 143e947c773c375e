"""What is read from the API server for a view: once, or again and again while somebody watches.

Not everybody may read everything. What a view cannot do without is an error when it is refused; of the rest it is told
that it could not be read, and the view says "unknown" and never "none".
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from tessera.errors import Forbidden, NotFound
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import EVERYTHING, Kind, Selection

T = TypeVar("T")
SETTLE_S = 0.2
"""Changes come in bursts; what is shown is what stands when a burst is over."""
TICK_S = 5.0
"""Nobody tells when an agent falls silent, or when a reader is gone: it shows when time has passed."""


class Source(Generic[T]):
    """The objects of one kind. `items` is None where they may not be read; `trouble` then says why."""

    def __init__(
        self, client: Client, kind: Kind[T], selection: Selection = EVERYTHING, *, required: bool = False
    ) -> None:
        self._client = client
        self._kind = kind
        self._selection = selection
        self._required = required
        self._informer: Informer[T] | None = None
        self._listed: tuple[T, ...] | None = None
        self.trouble = ""

    @property
    def items(self) -> tuple[T, ...] | None:
        if self._informer is not None and self._informer.is_synced:
            return tuple(self._informer)
        return self._listed

    async def read(self) -> None:
        try:
            page = await self._client.list(self._kind, self._selection)
        except (Forbidden, NotFound) as error:
            if self._required:
                raise
            self.trouble = f"{error.target} may not be listed" if isinstance(error, Forbidden) else str(error)
            return
        self._listed = page.items

    async def follow(self, stir: Callable[[], None]) -> None:
        if self._listed is None:
            return
        self._informer = Informer(self._client, self._kind, self._selection)
        self._informer.subscribe(lambda _: stir())
        await self._informer.run()


async def read_all(sources: Sequence[Source[Any]]) -> None:
    await asyncio.gather(*(source.read() for source in sources))


async def follow_all(sources: Sequence[Source[Any]], show: Callable[[], None]) -> None:
    """Call `show` after each burst of changes, and now and then without one, until cancelled."""
    stirred = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as tasks:
            for source in sources:
                tasks.create_task(source.follow(stirred.set))
            while True:
                await _wait(stirred, TICK_S)
                await asyncio.sleep(SETTLE_S)
                stirred.clear()
                show()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


async def _wait(event: asyncio.Event, most_s: float) -> None:
    try:
        async with asyncio.timeout(most_s):
            await event.wait()
    except TimeoutError:
        return
