"""How cards become a pod's: reserved first, then written to the API, then the pod's for good.

A Binding writes node and cards, a late allocation only the cards; what may go wrong is the same. The write names the
pod's UID and the resourceVersion that was read before, so of several for one pod, from us or from a leader before us,
one lands at most. Where its answer is lost, the cards stay reserved until it is known what became of it: the pod is
read again, and if it still has no cards, it is rewritten, so that what may be under way meets another version and is
refused.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

import numpy as np

from tessera.engine.fencing import Fence
from tessera.engine.ledger import State
from tessera.engine.quota import check_allocation
from tessera.errors import ApiError, BindRefused, KubeError, LedgerConflict, NotFound, TesseraError
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.allocations import Allocation
from tessera.model.annotations.binding import bind_marks
from tessera.model.refusals import render
from tessera.model.requests import PodRef, PodRequest
from tessera.scheduler.card_leases import CardLeases
from tessera.scheduler.fences import fence_pod
from tessera.scheduler.offers import Offers
from tessera.scheduler.world import FOREVER, World

WRITE_S = Fence().write_timeout
"""How long one call to the API may take; a leader's successor counts on it, and kube-scheduler waits ten seconds."""
Write = Callable[[Client, dict[str, str]], Awaitable[None]]


class Lost(NamedTuple):
    """A write of which it is not known whether it landed."""

    key: ObjectKey
    node: str


class Turns:
    """One at a time for each pod; kept for as long as somebody is in it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[ObjectKey, asyncio.Lock] = {}
        self._wanted: Counter[ObjectKey] = Counter()

    @asynccontextmanager
    async def of(self, key: ObjectKey) -> AsyncGenerator[None]:
        self._wanted[key] += 1
        try:
            async with self._locks.setdefault(key, asyncio.Lock()):
                yield
        finally:
            self._wanted[key] -= 1
            if not self._wanted[key]:
                del self._wanted[key], self._locks[key]


class Commits:
    """`may_write` says whether we still lead; `lost` is told of pods on which the fate of a write is unknown."""

    def __init__(
        self,
        client: Client,
        world: World,
        offers: Offers,
        *,
        leases: CardLeases,
        may_write: Callable[[], bool] = lambda: True,
        lost: Callable[[ObjectKey], None],
        write_s: float = WRITE_S,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client.within(write_s)
        self._world = world
        self._ledger = world.ledger
        self._offers = offers
        self._leases = leases
        self._may_write = may_write
        self._lost = lost
        self._clock = clock
        self._turns = Turns()
        self._uncertain: dict[str, Lost] = {}

    def turn_of(self, key: ObjectKey) -> AbstractAsyncContextManager[None]:
        """Nothing else is committed to the pod meanwhile."""
        return self._turns.of(key)

    def lost_on(self, uid: str) -> Lost | None:
        return self._uncertain.get(uid)

    async def read(self, key: ObjectKey) -> Pod:
        try:
            return await self._client.get(CACHED_PODS, key.name, namespace=key.namespace)
        except NotFound as error:
            raise BindRefused(f"{key}: the pod is gone") from error
        except KubeError as error:
            raise BindRefused(f"{key}: the pod cannot be read: {error}") from error

    def take(self, ref: PodRef, request: PodRequest, node: str, judged: PodRequest | None = None) -> Allocation:
        """Reserve cards, those that were offered if they are still to be had; BindRefused, if there are none.

        `judged` is what the node is judged by, where that is not all that the pod will occupy.
        """
        row = self._ledger.fleet.row_of.get(node)
        if row is None:
            raise BindRefused(f"{ref}: {node}: {self._world.why_unknown(node)}")
        judged, decider = judged or request, self._world.decider
        offered = self._offers.take(ref.uid, request, node)
        found = self._reserve(ref, request, offered) or self._reserve(ref, request, decider.allocate(judged, row))
        if found is None:
            self._offers.withdraw_all(node)
            found = self._reserve(ref, request, decider.allocate(judged, row))
        if found is None:
            raise BindRefused(f"{ref}: {node}: {decider.sentences(judged, np.array([row]))[0]}")
        return found

    async def write(self, ref: PodRef, request: PodRequest, allocation: Allocation, write: Write) -> None:
        """Tell the API of what was taken. After a clear no the cards are free again, after silence they are not."""
        key = ObjectKey(ref.namespace, ref.name)
        try:
            annotations = self._marks(allocation)
            await self._take_leases(ref, allocation)
            if not self._may_write():
                raise BindRefused(f"{key}: this scheduler does not lead any more; another one will decide on the pod")
        except (TesseraError, asyncio.CancelledError):
            self.free(ref.uid)
            raise
        try:
            await write(self._client, annotations)
        except (KubeError, asyncio.CancelledError) as error:
            self._give_up(key, ref.uid, allocation.node, error)
            raise
        if self._ledger.holding(ref.uid) is not None:  # else the pod has come to its end meanwhile
            self._ledger.adopt(ref, request, allocation)

    async def _take_leases(self, ref: PodRef, allocation: Allocation) -> None:
        """Of cards that are claimed. They are given back when the ledger has let go of the cards."""
        if not allocation.claimed:
            return
        if not self._may_write():
            raise BindRefused(f"{ref}: this scheduler does not lead any more; another one will decide on the pod")
        cards, is_shared = self._world.cards_of(allocation), self._world.shares_cards(allocation)
        await self._leases.acquire(ref, cards, shared=is_shared)

    def free(self, uid: str) -> None:
        """Give back what we reserved; not what the API has shown to be the pod's meanwhile."""
        holding = self._ledger.holding(uid)
        if holding is not None and holding.state is State.RESERVED:
            self._world.release(uid)

    async def clear_up(self, key: ObjectKey) -> None:
        """Find out what became of a write whose answer was lost; raises until that is known."""
        async with self.turn_of(key):
            try:
                pod = await self._client.get(CACHED_PODS, key.name, namespace=key.namespace)
            except NotFound:
                pod = None
            for uid in [uid for uid, lost in self._uncertain.items() if lost.key == key]:
                await self._settle(key, uid, pod if pod is not None and pod.metadata.uid == uid else None)
                del self._uncertain[uid]

    async def _settle(self, key: ObjectKey, uid: str, pod: Pod | None) -> None:
        bound = self._world.reader.bound_pod(pod) if pod is not None else None
        if pod is not None and (not pod.spec.node_name or (bound is not None and bound.lacks_cards)):
            await fence_pod(self._client, pod, self._clock.wall().isoformat())
        held = self._ledger.holding(uid)
        if held is None:  # the pod has come to its end meanwhile
            return
        if bound is not None and bound.allocation == held.allocation:
            self._ledger.commit(uid)
            return
        self.free(uid)
        if pod is not None and bound is not None:
            self._world.pod_changed(Change(key, None, pod))

    def _give_up(self, key: ObjectKey, uid: str, node: str, error: BaseException) -> None:
        """A clear no frees the cards. After anything else the write may have landed, or land yet."""
        if isinstance(error, ApiError) and 400 <= error.status < 500:
            self.free(uid)
            return
        self._uncertain[uid] = Lost(key, node)
        self._lost(key)

    def _reserve(self, ref: PodRef, request: PodRequest, allocation: Allocation | None) -> Allocation | None:
        """Reserve these cards, if they are still to be had."""
        if allocation is None:
            return None
        with self._offers.set_aside(lambda offer: offer.ref.namespace == ref.namespace):
            limits = self._world.limits_of(ref.namespace)
            over = check_allocation(self._ledger, ref.namespace, request, allocation, limits)
        if over is not None:
            raise BindRefused(f"{ref}: {render(over)}")
        try:
            self._ledger.reserve(ref, request, allocation, expires_at=FOREVER)
        except LedgerConflict:
            return None
        return allocation

    def _marks(self, allocation: Allocation) -> dict[str, str]:
        indexes, now = self._world.card_ids(allocation.node), int(self._clock.wall().timestamp())
        annotations, _ = bind_marks(allocation, indexes, self._world.reader.allocation_keys, now)
        return annotations
