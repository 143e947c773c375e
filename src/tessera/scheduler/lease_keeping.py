"""Keeping the Leases of cards true: each says who holds its card by the ledger's word, and none is left over.

Nothing here is told what to do by whoever binds or fails to: a card is looked at whenever its Lease or a holding of it
changes, and what is found is put right. So a scheduler may die after any write, and the next one finishes it.

Leases outlast schedulers. One whose pod is gone from the API may be all that is left to say that the pod's processes
still run on a node that is lost; its card stays taken until that node's agent has the last word. Whoever deletes such
a Lease by hand has it.
"""

from collections.abc import Callable, Iterable

import structlog

from tessera.engine.fleet import Kind
from tessera.engine.ledger import Holding, Ledger, State
from tessera.errors import AlreadyExists, Conflict, NotFound
from tessera.kube.caching import Change
from tessera.kube.client import Client, Deletion
from tessera.kube.kinds import LEASES
from tessera.kube.objects import Document, ObjectKey, identify
from tessera.kube.pods import CACHED_PODS, OVER, Pod
from tessera.kube.reconciler import Again
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.allocations import Allocation, CardShare
from tessera.model.card_leases import (
    CardRef,
    Hold,
    card_of,
    holders_in,
    is_shared,
    lease_for,
    says_the_same,
)
from tessera.model.claims import CLAIMABLE
from tessera.model.requests import PodRef, PodRequest
from tessera.scheduler.card_leases import CardLeases
from tessera.scheduler.world import World

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LOOK_AGAIN_S = 1.0
LINGERING_S = 10.0
MOST_REMEMBERED = 10_000


class LeaseHolders:
    """Whether pods may still use the cards that Leases say they hold.

    `find_uid` knows pods as they were last seen; `lingers` whether processes of a pod that is gone may still run.
    """

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        find_uid: Callable[[str], Pod | None],
        lingers: Callable[[str, str], bool],
    ) -> None:
        self._client = client
        self._ledger = ledger
        self._find_uid = find_uid
        self._lingers = lingers
        self._ended: dict[str, None] = {}

    def has_ended(self, uid: str) -> None:
        """Nothing is left of the pod, on its node either."""
        if len(self._ended) >= MOST_REMEMBERED:
            self._ended.pop(next(iter(self._ended)))
        self._ended[uid] = None

    async def is_alive(self, pod: PodRef, card: CardRef) -> bool:
        """A pod that holds other cards by its claim does not hold this one; any other that lives there may."""
        held = self._ledger.holding(pod.uid)
        if held is not None and held.allocation.claimed:
            return holds(held, card) or self.is_lingering(pod, card)
        live = await self._read(pod)
        if live is not None:
            return live.spec.node_name == card.node and live.status.phase not in OVER
        return self.is_lingering(pod, card)

    def is_lingering(self, pod: PodRef, card: CardRef) -> bool:
        """Whether the pod is gone, and its processes may not be. Whom we leased a card to is known by name, too."""
        is_gone = bool(pod.name) and self._find_uid(pod.uid) is None and pod.uid not in self._ended
        return is_gone and self._lingers(card.node, pod.uid)

    async def _read(self, pod: PodRef) -> Pod | None:
        """The pod itself, not another one that has its name now."""
        cached = self._find_uid(pod.uid)
        key = identify(cached).key if cached is not None else ObjectKey(pod.namespace, pod.name)
        if not key.name:
            return None
        try:
            live = await self._client.get(CACHED_PODS, key.name, namespace=key.namespace)
        except NotFound:
            return None
        return live if live.metadata.uid == pod.uid else None


class LeaseKeeper:
    """`keep` belongs in a Reconciler; `mark` is its. `may_write` says whether we lead and know everything."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        world: World,
        leases: CardLeases,
        holders: LeaseHolders,
        *,
        may_write: Callable[[], bool],
        mark: Callable[[str], None],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._world = world
        self._ledger = world.ledger
        self._leases = leases
        self._holders = holders
        self.may_write = may_write
        self._mark = mark
        self._clock = clock
        self._cards: dict[str, CardRef] = {}
        self._deleted: set[str] = set()

    def lease_changed(self, change: Change[Document]) -> None:
        lease = change.after or change.before
        card = card_of(lease) if lease else None
        if card is None:
            return
        name = change.key.name
        self._cards.setdefault(name, card)
        if change.after is None:
            self._deleted.add(name)
        self._mark(name)

    def held(self, holding: Holding) -> None:
        for card in self._world.cards_of(holding.allocation):
            self._cards[card.lease_name] = card
            self._mark(card.lease_name)

    def let_go(self, holding: Holding) -> None:
        """Its node may be gone, or the card, or it may have another id by now: what we know of its leases counts."""
        if holding.state is not State.RESERVED:
            self._holders.has_ended(holding.ref.uid)
        self.held(holding)
        for name, card in self._cards.items():
            if card.node == holding.allocation.node and holds(holding, card):
                self._mark(name)

    async def keep(self, name: str) -> Again | None:
        """Make the Lease of this name say what is so."""
        card = self._cards.get(name)
        if card is None:
            return None
        if not self.may_write():
            return Again(LOOK_AGAIN_S)
        lease = await self._leases.find(name)
        if lease is None:
            return await self._restore(card)
        self._deleted.discard(name)
        if any(self._is_reserved(pod.uid, card) for pod in holders_in(lease)):
            return Again(LOOK_AGAIN_S)
        lasting = self._lasting(card)
        if lasting:
            return await self._correct(card, lease, lasting)
        return await self._clear(card, lease)

    async def _restore(self, card: CardRef) -> Again | None:
        """There is no Lease. Who deletes the one of a pod that is gone says that its processes are, too."""
        was_deleted = card.lease_name in self._deleted
        self._deleted.discard(card.lease_name)
        for holding in self._lasting(card) if was_deleted else ():
            if holding.state is State.DRAINING:
                log.info("card freed by hand", card=str(card), pod=str(holding.ref))
                self._world.release(holding.ref.uid)
        lasting = self._lasting(card)
        if not lasting:
            self._cards.pop(card.lease_name, None)
            return None
        try:
            await self._leases.create(card, self._hold(lasting))
        except AlreadyExists:
            return Again(0.0)
        log.info("lease restored", lease=card.lease_name, pod=str(lasting[0].ref))
        return None

    async def _correct(self, card: CardRef, lease: Document, lasting: list[Holding]) -> Again | None:
        hold = self._hold(lasting)
        if says_the_same(lease, lease_for(card, hold, self._clock.wall(), lease)):
            return None
        try:
            await self._leases.replace(card, hold, lease)
        except (Conflict, NotFound):
            return Again(0.0)
        return None

    async def _clear(self, card: CardRef, lease: Document) -> Again | None:
        """Nobody holds the card by the ledger's word. The API has the last one."""
        living = [pod for pod in holders_in(lease) if await self._holders.is_alive(pod, card)]
        for pod in living:
            if self._holders.is_lingering(pod, card):
                self._recall(pod, card, shared=is_shared(lease))
        if living:
            return Again(LINGERING_S)
        _, uid, version = identify(lease)
        how = Deletion(uid=uid, resource_version=version)
        try:
            await self._client.delete(LEASES, card.lease_name, namespace=self._namespace, how=how)
        except NotFound:
            pass
        except Conflict:
            return Again(0.0)
        log.info("lease given back", lease=card.lease_name)
        return None

    def _recall(self, pod: PodRef, card: CardRef, *, shared: bool) -> None:
        """A scheduler before us knew that the pod drains; the Lease is what is left of that."""
        kind = Kind() if shared else self._world.kind_of(card.node, card.uuid)
        share = CardShare(
            uuid=card.uuid, vendor=CLAIMABLE, memory_mib=kind.memory_mib, cores_percent=kind.cores_percent
        )
        known = self._ledger.holding(pod.uid)
        claimed = (*(known.allocation.claimed if known else ()), share)
        self._ledger.adopt(pod, PodRequest(), Allocation(card.node, claimed=claimed))
        self._ledger.drain(pod.uid)
        log.info("pod drains", pod=str(pod), node=card.node, card=str(card))

    def _is_reserved(self, uid: str, card: CardRef) -> bool:
        held = self._ledger.holding(uid)
        return held is not None and held.state is State.RESERVED and holds(held, card)

    def _hold(self, holdings: Iterable[Holding]) -> Hold:
        known = sorted(holdings, key=lambda holding: holding.ref.uid)
        is_shared = self._world.shares_cards(known[0].allocation)
        return Hold(tuple(holding.ref for holding in known), is_shared=is_shared)

    def _lasting(self, card: CardRef) -> list[Holding]:
        on_node = self._ledger.holdings_on(card.node)
        return [holding for holding in on_node if holding.state is not State.RESERVED and holds(holding, card)]


def holds(holding: Holding, card: CardRef) -> bool:
    return any(share.uuid == card.uuid for share in holding.allocation.claimed)
