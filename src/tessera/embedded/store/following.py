"""One who follows the changes of a resource: each once, in order, only what is durable."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence

from tessera.embedded.store.feed import Feed
from tessera.embedded.store.records import Change


class Following(AsyncIterator[Change]):
    """Nothing has to be given back: whoever stops asking is done. Ends when the store is closed.

    A wait that is cancelled loses nothing; the next one goes on from the same place.
    """

    def __init__(self, feed: Feed, resource: str, namespace: str, since: int) -> None:
        self._feed = feed
        self._resource = resource
        self._namespace = namespace
        self._seen = since
        self._ready: deque[Change] = deque()
        self._fetch()

    def __aiter__(self) -> "Following":
        return self

    async def __anext__(self) -> Change:
        """Raises Forgotten once history has moved on past what this one has seen."""
        await self._wait()
        if not self._ready:
            raise StopAsyncIteration
        return self._ready.popleft()

    async def batch(self) -> Sequence[Change]:
        """At least one change and all that is at hand, for whoever sends several at once; empty at the end."""
        await self._wait()
        changes = tuple(self._ready)
        self._ready.clear()
        return changes

    @property
    def reached(self) -> int:
        """Up to this version nothing was missed and nothing is still to be handed out."""
        if self._ready:
            return self._ready[0].version - 1
        return self._feed.reached(self._resource, self._seen)

    async def _wait(self) -> None:
        while not self._ready and not self._feed.is_closed:
            self._fetch()
            if self._ready:
                return
            if self._seen < self._feed.durable:
                await asyncio.sleep(0)
            else:
                await self._feed.stirred(self._resource)

    def _fetch(self) -> None:
        changes, self._seen = self._feed.read(self._resource, self._seen)
        self._ready.extend(change for change in changes if self._namespace in ("", change.key.namespace))
