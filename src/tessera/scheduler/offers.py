"""What was offered to kube-scheduler a moment ago and is not bound yet.

kube-scheduler decides on the next pod before the last one's bind has reached us. So the node that scored best is held
for its pod for two seconds, and the next pod is scored as if the first were there: a burst spreads over the nodes it
will really fill. An offer is a guess, and never the reason why a pod has to wait: where no node is left but for offers,
they do not count.

What is kept for a gang is no guess. It is firm: it stands in the way of others until it is taken, given back, or late.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from tessera.engine.ledger import Holding, Ledger, State
from tessera.errors import LedgerConflict
from tessera.model.allocations import Allocation
from tessera.model.requests import PodRef, PodRequest

OFFER_S = 2.0


class Offers:
    """`freed` is told when an offer ends because nobody came for it: whoever did not fit beside it may fit now."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._open: dict[str, Holding] = {}
        self._firm: dict[str, Holding] = {}
        self.freed: Callable[[], None] = lambda: None

    def make(
        self, ref: PodRef, request: PodRequest, allocation: Allocation, now_s: float, *, last_s: float = OFFER_S
    ) -> None:
        self.withdraw(ref.uid)
        if self._ledger.holding(ref.uid) is None:
            self._reserve(ref, request, allocation, now_s + last_s)

    def keep(self, uid: str) -> None:
        """What the ledger has reserved for the pod is a firm offer."""
        holding = self._ledger.holding(uid)
        assert holding is not None
        self._firm[uid] = holding

    def firm(self, uid: str) -> Holding | None:
        offer = self._firm.get(uid)
        return offer if offer is not None and self._is_still_ours(offer) else None

    def _reserve(self, ref: PodRef, request: PodRequest, allocation: Allocation, expires_at: float) -> None:
        with suppress(LedgerConflict):
            self._ledger.reserve(ref, request, allocation, expires_at=expires_at)
            holding = self._ledger.holding(ref.uid)
            assert holding is not None
            self._open[ref.uid] = holding

    def take(self, uid: str, request: PodRequest, node: str) -> Allocation | None:
        """The cards offered to the pod on this node; the offer is over, whichever node it was for.

        A claim may be another one by now, or have cards that it had not then: what was offered then will not do.
        """
        offer = self._open.get(uid) or self._firm.get(uid)
        self.withdraw(uid)
        if offer is None or offer.allocation.node != node or offer.request != request:
            return None
        return offer.allocation

    def withdraw(self, uid: str) -> None:
        offer = self._open.pop(uid, None) or self._firm.pop(uid, None)
        if offer is not None and self._is_still_ours(offer):
            self._ledger.release(uid)

    def expire(self, now_s: float) -> None:
        offers = [*self._open.items(), *self._firm.items()]
        late = [uid for uid, offer in offers if offer.expires_at <= now_s]
        for uid in late:
            self.withdraw(uid)
        if late:
            self.freed()

    def nodes(self) -> set[str]:
        return {offer.allocation.node for offer in self._open.values() if self._is_still_ours(offer)}

    def withdraw_all(self, node: str) -> None:
        """Somebody who has decided comes before everybody who may."""
        for uid in [uid for uid, offer in self._open.items() if offer.allocation.node == node]:
            self.withdraw(uid)

    def withdraw_soft(self) -> None:
        """The same on all nodes."""
        for node in self.nodes():
            self.withdraw_all(node)

    @contextmanager
    def set_aside(self, concerned: Callable[[Holding], bool]) -> Generator[None]:
        """Look at the ledger as if these offers had not been made. One that cannot be restored afterwards is over."""
        aside = [offer for offer in self._open.values() if self._is_still_ours(offer) and concerned(offer)]
        for offer in aside:
            self.withdraw(offer.ref.uid)
        try:
            yield
        finally:
            for offer in aside:
                self._reserve(offer.ref, offer.request, offer.allocation, offer.expires_at)

    def _is_still_ours(self, offer: Holding) -> bool:
        """Not so, once a bind or the API has made something lasting of it."""
        return self._ledger.holding(offer.ref.uid) is offer and offer.state is State.RESERVED
