"""Becoming the one who binds: only once nothing that an earlier leader decided can land any more.

A leader that was stopped between a decision and its write may wake up at any time and send it. So a new leader, before
it answers, rewrites every pod that waits for a node or for cards: what was decided on the pod as it was meets another
version and is refused. Then it waits until its own caches have seen all of that.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import structlog

from tessera.errors import Conflict, KubeError, NotFound
from tessera.kube.client import Client
from tessera.kube.following import Leading
from tessera.kube.informer import Informer
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.annotations.keys import FENCED_AT
from tessera.scheduler.fences import fence_pod

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
AT_ONCE = 16
LOOK_AGAIN_S = 0.05
RETRY_S = 1.0


class Leadership:
    """`is_undecided` says whether cards may still be given to a pod, which it tells from all `caches` together.

    Without an election there is no other, and nothing to fence.
    """

    def __init__(
        self,
        client: Client,
        pods: Informer[Pod],
        *,
        election: Leading | None,
        is_undecided: Callable[[Pod], bool],
        caches: Sequence[Informer[Any]] = (),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._pods = pods
        self._election = election
        self._is_undecided = is_undecided
        self._caches = (pods, *caches)
        self._clock = clock
        self._fenced_epoch: int | None = None

    @property
    def is_established(self) -> bool:
        """Whether decisions may be made: we lead, and nobody else's can land any more."""
        if self._election is None:
            return True
        return self._election.is_leader and self._fenced_epoch == self._election.epoch

    def may_write(self) -> bool:
        return self._election is None or (self.is_established and self._election.may_write())

    async def run(self) -> None:
        """Establish each term of ours; goes on until it is cancelled."""
        election = self._election
        if election is None:
            return
        while True:
            await election.gained()
            for cache in self._caches:
                await cache.synced()
            try:
                await self._establish(election)
            except* KubeError as problems:
                log.warning("not established yet", error=str(problems.exceptions[0]))
            if self.is_established:
                await election.lost()
            else:
                await self._clock.sleep(RETRY_S)

    async def _establish(self, election: Leading) -> None:
        epoch = election.epoch
        while election.is_leader and not election.may_read_state():
            await self._clock.sleep(LOOK_AGAIN_S)
        count = await self.fence(pod for pod in self._pods if self._is_undecided(pod))
        self._fenced_epoch = epoch
        log.info("established", epoch=epoch, pods_fenced=count)

    async def fence(self, pods: Iterable[Pod]) -> int:
        """Rewrite the pods, and return when the cache has seen each of them after that."""
        keys = [ObjectKey(pod.metadata.namespace or "", pod.metadata.name or "") for pod in pods]
        stamp = self._clock.wall().isoformat(timespec="microseconds")
        turns = asyncio.Semaphore(AT_ONCE)

        async def fence_one(key: ObjectKey) -> None:
            async with turns:
                while not await self._rewrite(key, stamp):
                    log.info("a pod changed while it was fenced", pod=str(key))
            while not self._is_seen(key, stamp):
                await self._clock.sleep(LOOK_AGAIN_S)

        async with asyncio.TaskGroup() as tasks:
            for key in keys:
                tasks.create_task(fence_one(key))
        return len(keys)

    async def _rewrite(self, key: ObjectKey, stamp: str) -> bool:
        """False, if the pod changed under our hands. One that is decided meanwhile needs no fence."""
        try:
            pod = await self._client.get(CACHED_PODS, key.name, namespace=key.namespace)
            if self._is_undecided(pod):
                await fence_pod(self._client, pod, stamp)
        except Conflict:
            return False
        except NotFound:
            return True
        return True

    def _is_seen(self, key: ObjectKey, stamp: str) -> bool:
        pod = self._pods.get(key)
        return pod is None or not self._is_undecided(pod) or (pod.metadata.annotations or {}).get(FENCED_AT) == stamp
