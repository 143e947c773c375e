"""What was offered to kube-scheduler a moment ago and is not bound yet.

kube-scheduler decides on the next pod before the last one's bind has reached us. So the node that scored best is held
for its pod for two seconds, and the next pod is scored as if the first were there: a burst spreads over the nodes it
will really fill. An offer is a guess, and never the reason why a pod has to wait: where no node is left but for offers,
they do not count.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from tessera.engine.ledger import Holding, Ledger, State
from tessera.errors import LedgerConflict
from tessera.model.allocations import Allocation
from tessera.model.requests import PodRef, PodRequest

OFFER_S = 2.0


class Offers:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._open: dict[str, Holding] = {}

    def make(
        self, ref: PodRef, request: PodRequest, allocation: Allocation, now_s: float, *, last_s: float = OFFER_S
    ) -> None:
        self.withdraw(ref.uid)
        if self._ledger.holding(ref.uid) is None:
            self._reserve(ref, request, allocation, now_s + last_s)

    def _reserve(self, ref: PodRef, request: PodRequest, allocation: Allocation, expires_at: float) -> None:
        with suppress(LedgerConflict):
            self._ledger.reserve(ref, request, allocation, expires_at=expires_at)
            holding = self._ledger.holding(ref.uid)
            assert holding is not None
            self._open[ref.uid] = holding

    def take(self, uid: str, node: str) -> Allocation | None:
        """The cards offered to the pod on this node; the offer is over, whichever node it was for."""
        offer = self._open.get(uid)
        self.withdraw(uid)
        return offer.allocation if offer is not None and offer.allocation.node == node else None

    def withdraw(self, uid: str) -> None:
        offer = self._open.pop(uid, None)
        if offer is not None and self._is_still_ours(offer):
            self._ledger.release(uid)

    def expire(self, now_s: float) -> None:
        for uid in [uid for uid, offer in self._open.items() if offer.expires_at <= now_s]:
            self.withdraw(uid)

    def nodes(self) -> set[str]:
        return {offer.allocation.node for offer in self._open.values() if self._is_still_ours(offer)}

    def withdraw_all(self, node: str) -> None:
        """Somebody who has decided comes before everybody who may."""
        for uid in [uid for uid, offer in self._open.items() if offer.allocation.node == node]:
            self.withdraw(uid)

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
