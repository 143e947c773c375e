"""A reconciler: for each key that was marked, make the world as it should be, again and again until it is.

Level-based: it is told which object to look at, never what happened to it, so that missed, repeated and merged marks
are all the same. What the function does with a key decides what comes next:

    returns None             done, until the key is marked again
    returns Again(after_s)   look again then, or when it is marked
    raises Unrecoverable     told, and not tried again until the key is marked
    raises anything else     told, and tried again, later each time
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import msgspec
import structlog

from tessera.errors import Unrecoverable
from tessera.kube.queueing import WorkQueue
from tessera.kube.timing import SYSTEM_CLOCK, Backoff, Chance, Clock, TokenBucket

K = TypeVar("K", bound=Hashable)
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

RETRIES = Backoff(first_s=0.05, most_s=300.0)
RETRIES_PER_S = 10.0
RETRIES_AT_ONCE = 100.0


class Again(msgspec.Struct, frozen=True):
    after_s: float


Reconcile = Callable[[K], Awaitable[Again | None]]


class Counts(msgspec.Struct, kw_only=True):
    """Since the start."""

    done: int = 0
    again: int = 0
    failed: int = 0
    given_up: int = 0


class Reconciler(Generic[K]):
    """`mark` may be called from an informer's handler: it never waits. `run` belongs in a TaskGroup of the caller."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[K],
        *,
        workers: int = 4,
        backoff: Backoff = RETRIES,
        clock: Clock = SYSTEM_CLOCK,
        chance: Chance = random.random,
    ) -> None:
        self._name = name
        self._reconcile = reconcile
        self._workers = workers
        self._backoff = backoff
        self._clock = clock
        self._chance = chance
        self._retries = TokenBucket(per_s=RETRIES_PER_S, burst=RETRIES_AT_ONCE)
        self._failures: dict[K, int] = {}
        self.queue: WorkQueue[K] = WorkQueue()
        self.counts = Counts()

    def mark(self, key: K) -> None:
        self.queue.mark(key)

    def stop(self) -> None:
        """Finish the keys that are in hand and let `run` return. Those that wait are left for the next start."""
        self.queue.close()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while (key := await self.queue.take()) is not None:
            try:
                await self._attend(key)
            finally:
                self.queue.put_down(key)

    async def _attend(self, key: K) -> None:
        try:
            outcome = await self._reconcile(key)
        except Unrecoverable as error:
            self._failures.pop(key, None)
            self.counts.given_up += 1
            log.error("gave up", reconciler=self._name, key=str(key), error=str(error))
        except Exception as error:
            self._retry(key, error)
        else:
            self._failures.pop(key, None)
            self._plan(key, outcome)

    def _plan(self, key: K, outcome: Again | None) -> None:
        if outcome is None:
            self.counts.done += 1
            return
        self.counts.again += 1
        self.queue.mark_later(key, outcome.after_s)

    def _retry(self, key: K, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.counts.failed += 1
        own_s = self._backoff.wait_s(failures, self._chance)
        wait_s = max(own_s, self._retries.reserve(self._clock.monotonic_s()))
        log.warning(
            "reconcile failed",
            reconciler=self._name,
            key=str(key),
            error=f"{type(error).__name__}: {error}",
            failures=failures,
            retry_in_s=round(wait_s, 3),
        )
        self.queue.mark_later(key, wait_s)
