"""The cluster as the last events tell it: the ledger that follows nodes and pods, and who decides over it.

Its methods are the handlers of informers and never wait. What the API shows is so, even where it contradicts us; what
cannot be read is told, and does not hide the rest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import structlog

from tessera.engine.deciding import Decider
from tessera.engine.fleet import Kind
from tessera.engine.ledger import Holding, Ledger, State
from tessera.engine.policies import PolicyBook
from tessera.errors import ClaimUnmet, InvalidInput
from tessera.kube.caching import Change
from tessera.kube.objects import Document, ObjectKey, identify
from tessera.kube.pods import OVER, Pod
from tessera.model.allocations import Allocation
from tessera.model.annotations.claims import Pin
from tessera.model.card_leases import CardRef
from tessera.model.catalogue import Catalogue
from tessera.model.quotas import Limits, read_quotas
from tessera.model.refusals import Reason, Refusal, render
from tessera.model.requests import PodRequest, PolicyChoice
from tessera.scheduler.claims import Claims, GpuClaim, Holder
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.reading import BoundPod, Complaints, Reader, put_pod
from tessera.scheduler.steering import Steering

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
FOREVER = float("inf")
UNREGISTERED = render(Refusal(Reason.NODE_UNKNOWN))


class World:
    """Hooks tell others: of room, of pods on a node without cards, of cards that claims hold and let go.

    `lingers` says whether processes of a pod that is gone may still use its cards, `naming` which pods name a claim,
    `is_planned` whether a pod's place is kept for it as the member of a gang.
    """

    def __init__(self, catalogue: Catalogue, *, default: PolicyChoice) -> None:
        self.catalogue = catalogue
        self._handshakes = frozenset(key for vendor in catalogue for key in vendor.annotations.handshakes())
        self.claims = Claims(catalogue)
        self.claims.holders_of = self._holders_of
        self.reader = Reader(catalogue, self.claims)
        self.ledger = Ledger()
        self.policies = PolicyBook(self.ledger.fleet, self.ledger.live, default=default)
        self.decider = Decider(self.ledger, self.policies)
        self.steering = Steering()
        self.complaints: dict[str, Complaints] = {}
        self.freed: Callable[[], None] = lambda: None  # told when there may be room that was not there before
        self.lacks_cards: Callable[[ObjectKey], None] = lambda _: None
        self.lingers: Callable[[Pod], bool] = lambda _: False
        self.naming: Callable[[ObjectKey], Iterable[Pod]] = lambda _: ()
        self.is_planned: Callable[[str], bool] = lambda _: False
        self.claim_held: Callable[[Holding], None] = lambda _: None
        self.claim_let_go: Callable[[Holding], None] = lambda _: None
        self.revision = 0  # of what decides beside the ledger: claims and quotas
        self._quotas: dict[ObjectKey, Document] = {}
        self._limits: dict[str, dict[str, Limits]] = {}

    def request_of(self, pod: object) -> PodRequest:
        return self.reader.request_of(pod)

    def is_undecided(self, pod: Pod) -> bool:
        """Whether cards may still be given to the pod: it asks, and has no node yet or no cards on ours."""
        if pod.metadata.deletion_timestamp is not None:
            return False
        if pod.spec.node_name:
            bound = self.reader.bound_pod(pod)
            return bound is not None and bound.lacks_cards and self.has_cards(bound.node)
        try:
            return self.request_of(pod).wants_devices
        except ClaimUnmet:
            return True
        except InvalidInput:
            return False

    def has_cards(self, node: str) -> bool:
        """Whether cards are registered on the node, so that they are ours to give."""
        row = self.ledger.fleet.row_of.get(node)
        return row is not None and bool(self.ledger.fleet.uuids[row])

    def why_unknown(self, node: str) -> str:
        """Why a node that exists has no row: it says nothing of cards, or nothing that can be true."""
        return next(iter(self.complaints.get(f"node {node}", ())), UNREGISTERED)

    def limits_of(self, namespace: str) -> Mapping[str, Limits]:
        return self._limits.get(namespace, {})

    def node_changed(self, change: Change[CachedNode]) -> None:
        name = change.key.name
        self.steering.node_changed(change)
        if change.after is None:
            self.ledger.drop_node(name)
            self._complain(f"node {name}", ())
            return
        if change.before is not None and self._says_the_same(change.before, change.after):
            return
        had_cards = self.has_cards(name)
        try:
            complaints = self.reader.put_node(self.ledger, change.after)
        except InvalidInput as error:
            self._complain(f"node {name}", (str(error),))
            return
        self._complain(f"node {name}", complaints)
        if not had_cards and self.has_cards(name):
            self._tell_of_pods_without_cards(name)
        self.freed()

    def _says_the_same(self, one: CachedNode, other: CachedNode) -> bool:
        """Heartbeats and handshakes change a node and say nothing that we go by."""
        if one.metadata.labels != other.metadata.labels or (one.spec, one.status) != (other.spec, other.status):
            return False
        before, after = one.metadata.annotations or {}, other.metadata.annotations or {}
        return before == after or all(
            before.get(key) == after.get(key) or key in self._handshakes for key in before.keys() | after.keys()
        )

    def pod_changed(self, change: Change[Pod]) -> None:
        pod = change.after
        self.steering.pod_changed(change)
        if pod is None:
            self._complain(f"pod {change.key}", ())
            if change.before is not None:
                self._let_go(change.before)
            return
        if change.before is not None and _holds_the_same(change.before, pod):
            return
        bound = self.reader.bound_pod(pod)
        if bound is not None:
            self._adopt(pod, bound)
            return
        if pod.status.phase in OVER:
            self.release(pod.metadata.uid or "")

    def quota_changed(self, change: Change[Document]) -> None:
        self.revision += 1
        if change.after is None:
            self._quotas.pop(change.key, None)
        else:
            self._quotas[change.key] = change.after
        namespace = change.key.namespace
        theirs = [quota for key, quota in self._quotas.items() if key.namespace == namespace]
        reading = read_quotas(theirs, self.catalogue)
        self._limits[namespace] = reading.limits
        self._complain(f"quotas of {namespace}", reading.complaints)
        self.freed()

    def release(self, uid: str) -> None:
        """Nothing of the pod is left, on its node either."""
        held = self.ledger.holding(uid)
        self.ledger.release(uid)
        if held is not None:
            if held.allocation.claimed:
                self.claim_let_go(held)
            self.freed()

    def _let_go(self, pod: Pod) -> None:
        """The pod is gone from the API. Where its processes may not be, its cards stay taken."""
        uid = pod.metadata.uid or ""
        held = self.ledger.holding(uid)
        if held is not None and held.allocation.shares and self.lingers(pod):
            self.ledger.drain(uid)
            log.info("pod drains", pod=str(held.ref), node=held.allocation.node, cards=len(held.allocation.shares))
        else:
            self.release(uid)

    def _adopt(self, pod: Pod, bound: BoundPod) -> None:
        """Charge what the pod holds. What it once held it still holds, whatever becomes of its annotations."""
        complaints = bound.complaints
        known = self.ledger.holding(bound.ref.uid)
        keeps = known is not None and known.allocation.shares and known.allocation.node == bound.node
        if bound.allocation is None and known is not None and keeps:
            if known.state is State.BOUND:
                named = f"pod {bound.ref} holds cards on {bound.node} that its annotations no longer name"
                complaints = (*complaints, f"{named}; they stay taken")
            if bound.is_initialised:
                self.ledger.settle(bound.ref.uid)
        else:
            put_pod(self.ledger, bound)
        self._complain(f"pod {bound.ref}", complaints)
        held = self.ledger.holding(bound.ref.uid)
        if held is not None and held.allocation.claimed:
            self.claim_held(held)
        if bound.lacks_cards and pod.metadata.deletion_timestamp is None:
            self.lacks_cards(identify(pod).key)

    def claim_changed(self, change: Change[GpuClaim]) -> None:
        """Pods that name it may ask for something else now, or can be read for the first time."""
        self.revision += 1
        self.claims.claim_changed(change)
        for pod in self.naming(change.key):
            if pod.spec.node_name:
                self.pod_changed(Change(identify(pod).key, None, pod))
        self.freed()

    def cards_of(self, allocation: Allocation) -> list[CardRef]:
        """The cards that were claimed, as Leases name them; without those that their node does not have any more."""
        ids = self.card_ids(allocation.node)
        claimed = (share.uuid for share in allocation.claimed)
        return [CardRef(allocation.node, ids[uuid], uuid) for uuid in claimed if uuid in ids]

    def card_ids(self, node: str) -> dict[str, int]:
        """The id of each card of a node by its UUID."""
        fleet = self.ledger.fleet
        row = fleet.row_of.get(node)
        if row is None:
            return {}
        ids: list[int] = fleet.wirings(np.array([row])).ids[0].tolist()
        return dict(zip(fleet.uuids[row], ids, strict=False))

    def kind_of(self, node: str, uuid: str) -> Kind:
        """What sort of card it is; one without anything, if the node does not have it."""
        fleet = self.ledger.fleet
        row = fleet.row_of.get(node)
        column = None if row is None else fleet.column_of(row, uuid)
        return Kind() if row is None or column is None else fleet.kinds[int(fleet.kind[row, column])]

    def shares_cards(self, allocation: Allocation) -> bool:
        """Whether others may be on the cards that were claimed: it does not take all cores of each."""
        return any(
            share.cores_percent < self.kind_of(allocation.node, share.uuid).cores_percent
            for share in allocation.claimed
        )

    def _holders_of(self, claim: ObjectKey) -> Iterator[Holder]:
        """The pods that have cards by this claim, or are about to; what was only offered does not count."""
        for pod in self.naming(claim):
            held = self.ledger.holding(pod.metadata.uid or "")
            if held is None or not held.allocation.claimed:
                continue
            if held.expires_at == FOREVER or self.is_planned(held.ref.uid):
                ids = tuple(sorted(card.id for card in self.cards_of(held.allocation)))
                yield Holder(held.ref, Pin(held.allocation.node, ids))

    def _tell_of_pods_without_cards(self, node: str) -> None:
        for holding in self.ledger.holdings_on(node):
            if holding.request.wants_devices and not holding.allocation.shares:
                self.lacks_cards(ObjectKey(holding.ref.namespace, holding.ref.name))

    def _complain(self, where: str, complaints: Complaints) -> None:
        if self.complaints.get(where, ()) == complaints:
            return
        if complaints:
            self.complaints[where] = complaints
            log.warning("cannot be read", where=where, complaints=list(complaints))
        else:
            del self.complaints[where]


def _holds_the_same(one: Pod, other: Pod) -> bool:
    """On its node most of what happens to a pod changes nothing about its cards."""
    before, after = one.metadata, other.metadata
    if before.uid != after.uid or not other.spec.node_name or one.spec.node_name != other.spec.node_name:
        return False
    status = (one.status.phase, one.status.conditions) == (other.status.phase, other.status.conditions)
    ending = before.deletion_timestamp == after.deletion_timestamp
    return status and ending and before.annotations == after.annotations and one.spec == other.spec
