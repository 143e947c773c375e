"""An informer: a cache that follows a kind on the API server, and tells what changes.

What it hears is judged by `replica`; here it listens, waits and calls the handlers, in the order of what happened.
Handlers must not wait: they are called between two events. Whoever has slow work to do marks the key in a
`Reconciler`'s queue and is done.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import structlog

from tessera.errors import KubeError, NotFound
from tessera.kube.caching import Cache, Change, IndexBy
from tessera.kube.client import Client
from tessera.kube.kinds import EVERYTHING, Kind, Selection
from tessera.kube.objects import ObjectKey, identify
from tessera.kube.replica import Position, Replica
from tessera.kube.timing import SYSTEM_CLOCK, Backoff, Chance, Clock
from tessera.kube.watching import Undecodable

T = TypeVar("T")
Handler = Callable[[Change[T]], None]
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

WATCH_S = 300
"""A watch is asked to end after this long to twice as long, so that watches spread over a group of API servers."""
SETTLED_S = 1.0
"""A watch that stood for this long worked, even if nothing happened in it."""


class Informer(Generic[T]):
    """`run` belongs in a TaskGroup of the caller, and goes on until it is cancelled.

    Of a kind that `may_be_absent` nothing is there while the server does not serve it; it is asked for now and then.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        selection: Selection = EVERYTHING,
        *,
        indexes: Mapping[str, IndexBy[T]] | None = None,
        on_undecodable: Callable[[Undecodable], None] | None = None,
        may_be_absent: bool = False,
        backoff: Backoff | None = None,
        clock: Clock = SYSTEM_CLOCK,
        chance: Chance = random.random,
    ) -> None:
        self._client = client
        self._kind = kind
        self._selection = selection
        self._replica: Replica[T] = Replica(Cache(indexes), self._report)
        self._on_undecodable = on_undecodable
        self._may_be_absent = may_be_absent
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._chance = chance
        self._handlers: list[Handler[T]] = []
        self._synced = asyncio.Event()
        self._contact_at_s: float | None = None

    def __len__(self) -> int:
        return len(self._replica.cache)

    def __iter__(self) -> Iterator[T]:
        return iter(self._replica.cache)

    def get(self, key: ObjectKey) -> T | None:
        return self._replica.cache.get(key)

    def find(self, index: str, value: str) -> list[T]:
        """The objects that the named index has under a value."""
        return self._replica.cache.find(index, value)

    def subscribe(self, handler: Handler[T]) -> None:
        """Tell the handler what is there, as additions, and from then on every change."""
        self._handlers.append(handler)
        for thing in self:
            self._call(handler, Change(identify(thing).key, None, thing))

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    async def synced(self) -> None:
        """Wait until everything there is has been taken in once."""
        await self._synced.wait()

    @property
    def silent_s(self) -> float | None:
        """How long ago the API server last told us anything; None if it never has. Bookmarks come once a minute."""
        return None if self._contact_at_s is None else self._clock.monotonic_s() - self._contact_at_s

    async def run(self) -> None:
        while True:
            position = await self._run_round(self._replica.begin())
            if position.failures:
                await self._clock.sleep(self._backoff.wait_s(position.failures, self._chance))

    async def _run_round(self, position: Position) -> Position:
        opened_at_s: float | None = None
        try:
            if not position.resource_version and not position.streams_initial_events:
                await self._list()
                return self._replica.end()
            async with self._client.watch(
                self._kind,
                self._selection,
                resource_version=position.resource_version,
                initial_events=not position.resource_version,
                timeout_s=round(WATCH_S * (1 + self._chance())),
            ) as events:
                opened_at_s = self._clock.monotonic_s()
                async for event in events:
                    self._hear(self._replica.take(event))
        except NotFound as error:
            if not self._may_be_absent:
                log.warning("kind not served", kind=self._kind.plural, error=str(error), failures=position.failures)
                return self._replica.end(error)
            self._hear(self._replica.take_absence())
            return self._replica.end(error)
        except KubeError as error:
            log.warning("watch interrupted", kind=self._kind.plural, error=str(error), failures=position.failures)
            return self._replica.end(error, was_settled=self._was_settled(opened_at_s))
        return self._replica.end(was_settled=self._was_settled(opened_at_s))

    async def _list(self) -> None:
        page = await self._client.list(self._kind, self._selection)
        self._hear(self._replica.take_list(page))

    def _was_settled(self, opened_at_s: float | None) -> bool:
        stood_s = 0.0 if opened_at_s is None else self._clock.monotonic_s() - opened_at_s
        return self._replica.is_complete and stood_s >= SETTLED_S

    def _hear(self, changes: list[Change[T]]) -> None:
        self._contact_at_s = self._clock.monotonic_s()
        for change in changes:
            for handler in self._handlers:
                self._call(handler, change)
        if self._replica.is_complete and not self.is_synced:
            log.info("cache filled", kind=self._kind.plural, objects=len(self))
            self._synced.set()

    def _call(self, handler: Handler[T], change: Change[T]) -> None:
        try:
            handler(change)
        except Exception:
            log.exception("handler failed", kind=self._kind.plural, key=str(change.key))

    def _report(self, odd: Undecodable) -> None:
        log.warning("object not decoded", kind=self._kind.plural, key=str(odd.identity.key), problem=odd.problem)
        if self._on_undecodable:
            self._on_undecodable(odd)
