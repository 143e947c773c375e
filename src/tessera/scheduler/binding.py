"""Bind: the node and the cards land on the pod in one write, or nothing does.

The cards are reserved before the Binding is sent, and the Binding names the pod's UID and the resourceVersion that was
read before. So of several Bindings for one pod, from us or from a leader before us, one lands at most. Where the answer
is lost, the cards stay reserved until it is known what became of the Binding: the pod is read again, and if it is still
free, it is rewritten, so that what may still be under way meets another version and is refused.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import numpy as np
import structlog

from tessera.engine.ledger import State
from tessera.engine.quota import check_allocation
from tessera.errors import (
    ApiError,
    BindRefused,
    Conflict,
    InvalidInput,
    KubeError,
    LedgerConflict,
    NotFound,
    TesseraError,
)
from tessera.kube.client import Client
from tessera.kube.objects import ObjectKey
from tessera.kube.pod_verbs import bind_pod
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.allocations import Allocation
from tessera.model.annotations.binding import bind_marks
from tessera.model.extender import BindingArgs
from tessera.model.refusals import Reason, Refusal, render
from tessera.model.requests import PodRef, PodRequest
from tessera.scheduler.fences import fence_pod
from tessera.scheduler.offers import Offers
from tessera.scheduler.world import World

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

MOST_TRIES = 2
WRITE_S = 8.0
"""How long one call to the API may take; kube-scheduler waits ten seconds for all of them."""
FOREVER = float("inf")


class Lost(NamedTuple):
    """A Binding of which it is not known whether it landed."""

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


class Binder:
    """`find_pod` knows pods as they were last seen; `may_write` says whether we still lead.

    `lost` is told of pods whose Binding's fate is unknown.
    """

    def __init__(
        self,
        client: Client,
        world: World,
        offers: Offers,
        find_pod: Callable[[ObjectKey], Pod | None],
        *,
        may_write: Callable[[], bool] = lambda: True,
        lost: Callable[[ObjectKey], None],
        write_s: float = WRITE_S,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client.within(write_s)
        self._world = world
        self._ledger = world.ledger
        self._offers = offers
        self._find_pod = find_pod
        self._may_write = may_write
        self._lost = lost
        self._clock = clock
        self._turns = Turns()
        self._uncertain: dict[str, Lost] = {}

    async def bind(self, args: BindingArgs) -> None:
        """Returns once the pod is on the node, by this Binding or an earlier one; BindRefused, if it is not."""
        key = ObjectKey(args.pod_namespace, args.pod_name)
        async with self._turns.of(key):
            try:
                await self._bind(key, args)
            except InvalidInput as error:
                raise BindRefused(str(error)) from error

    async def _bind(self, key: ObjectKey, args: BindingArgs) -> None:
        pod = self._find_pod(key) or await self._read(key)
        for attempt in range(1, MOST_TRIES + 1):
            if self._is_there(pod, args):
                return
            lost = self._uncertain.get(pod.metadata.uid or "")
            if lost is not None:
                raise BindRefused(f"{key}: an earlier binding to {lost.node} may still land; try again")
            try:
                await self._write(key, pod, args)
            except Conflict as error:
                if attempt == MOST_TRIES:
                    raise BindRefused(f"{key}: {error}") from error
                pod = await self._read(key)
            except KubeError as error:
                raise BindRefused(f"{key}: {error}") from error
            else:
                return

    def _is_there(self, pod: Pod, args: BindingArgs) -> bool:
        key, uid, node = f"{args.pod_namespace}/{args.pod_name}", pod.metadata.uid or "", pod.spec.node_name
        if args.pod_uid and uid != args.pod_uid:
            raise BindRefused(f"{key}: the pod is another one now, its UID is {uid}, expected {args.pod_uid}")
        held = self._ledger.holding(uid)
        if not node and held is not None and held.state is State.BOUND:
            node = held.allocation.node  # our Binding has landed, and the watch has not told yet
        if node and node != args.node:
            raise BindRefused(f"{key}: the pod is on {node} already, cannot bind it to {args.node}")
        return bool(node)

    async def _write(self, key: ObjectKey, pod: Pod, args: BindingArgs) -> None:
        ref = PodRef(key.namespace, key.name, pod.metadata.uid or "")
        request = self._world.request_of(pod)
        allocation = self._reserve(ref, request, args.node)
        try:
            annotations = self._marks(allocation)
            if not self._may_write():
                raise BindRefused(f"{key}: this scheduler does not lead any more; another one will bind the pod")
        except TesseraError:
            self._free(ref.uid)
            raise
        version = pod.metadata.resource_version or ""
        try:
            await bind_pod(self._client, key, args.node, annotations=annotations, uid=ref.uid, resource_version=version)
        except (KubeError, asyncio.CancelledError) as error:
            self._give_up(key, ref.uid, args.node, error)
            raise
        self._ledger.adopt(ref, request, allocation)
        log.info("pod bound", pod=str(key), node=args.node, cards=len(allocation.shares))

    def _give_up(self, key: ObjectKey, uid: str, node: str, error: BaseException) -> None:
        """A clear no frees the cards. After anything else the Binding may have landed, or land yet."""
        if isinstance(error, ApiError) and 400 <= error.status < 500:
            self._free(uid)
            return
        self._uncertain[uid] = Lost(key, node)
        self._lost(key)

    def _free(self, uid: str) -> None:
        """Give back what we reserved; not what the API has shown to be the pod's meanwhile."""
        holding = self._ledger.holding(uid)
        if holding is not None and holding.state is State.RESERVED:
            self._ledger.release(uid)

    def _reserve(self, ref: PodRef, request: PodRequest, node: str) -> Allocation:
        """Take the cards, those that were offered if they are still to be had."""
        row = self._ledger.fleet.row_of.get(node)
        if row is None:
            raise BindRefused(f"{ref}: {render(Refusal(Reason.NODE_UNKNOWN, where=node))}")
        offered = self._offers.take(ref.uid, node)
        found = self._take(ref, request, offered) or self._take(
            ref, request, self._world.decider.allocate(request, row)
        )
        if found is None:
            self._offers.withdraw_all(node)
            found = self._take(ref, request, self._world.decider.allocate(request, row))
        if found is None:
            raise BindRefused(f"{ref}: {node}: {self._world.decider.sentences(request, np.array([row]))[0]}")
        return found

    def _take(self, ref: PodRef, request: PodRequest, allocation: Allocation | None) -> Allocation | None:
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
        fleet = self._ledger.fleet
        uuids = fleet.uuids[fleet.row_of[allocation.node]]
        indexes = {uuid: position for position, uuid in enumerate(uuids)}
        now = int(self._clock.wall().timestamp())
        annotations, _ = bind_marks(allocation, indexes, self._world.allocation_keys, now)
        return annotations

    async def _read(self, key: ObjectKey) -> Pod:
        try:
            return await self._client.get(CACHED_PODS, key.name, namespace=key.namespace)
        except NotFound as error:
            raise BindRefused(f"{key}: the pod is gone") from error
        except KubeError as error:
            raise BindRefused(f"{key}: the pod cannot be read: {error}") from error

    async def clear_up(self, key: ObjectKey) -> None:
        """Find out what became of a Binding whose answer was lost; raises until that is known."""
        async with self._turns.of(key):
            try:
                pod = await self._client.get(CACHED_PODS, key.name, namespace=key.namespace)
            except NotFound:
                pod = None
            for uid in [uid for uid, lost in self._uncertain.items() if lost.key == key]:
                await self._settle(uid, pod if pod is not None and pod.metadata.uid == uid else None)
                del self._uncertain[uid]

    async def _settle(self, uid: str, pod: Pod | None) -> None:
        if pod is not None and not pod.spec.node_name:
            await fence_pod(self._client, pod, self._clock.wall().isoformat())
        held = self._ledger.holding(uid)
        if pod is not None and held is not None and pod.spec.node_name == held.allocation.node:
            self._ledger.commit(uid)
        else:
            self._free(uid)
