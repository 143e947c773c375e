"""A ledger, the policies and the decider over it, with the few questions that tests ask of them."""

from itertools import count

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.model.devices import Node
from tessera.model.refusals import Refusal, render
from tessera.model.requests import PodRequest, PolicyChoice
from tests.builders import a_pod, a_ref, a_share, a_want, an_allocation

BINPACK = PolicyChoice(node="binpack", cards=("binpack",))


class World:
    def __init__(self, *nodes: Node, default: PolicyChoice = BINPACK) -> None:
        self.ledger = Ledger()
        for node in nodes:
            self.ledger.put_node(node)
        self.book = PolicyBook(self.ledger.fleet, self.ledger.live, default=default)
        self.decider = Decider(self.ledger, self.book)
        self._uids = count(1)

    def hold(self, node: str, uuid: str, memory_mib: int = 0, cores_percent: int = 0, *, vendor: str = "NVIDIA") -> str:
        """Let somebody hold this much of a card, whether it fits or not; returns the pod's UID."""
        uid = f"holder-{next(self._uids)}"
        request = a_pod(a_want(1, vendor=vendor, memory_mib=memory_mib, cores_percent=cores_percent))
        share = a_share(uuid, memory_mib, cores_percent, vendor=vendor)
        self.ledger.adopt(a_ref(uid), request, an_allocation(node, share))
        return uid

    def place(self, request: PodRequest) -> str | None:
        """Decide on a pod and reserve what it is given; returns the node."""
        self.decider.observe(request)
        allocation = self.decider.choose(request)
        if allocation is None:
            return None
        self.ledger.reserve(a_ref(f"placed-{next(self._uids)}"), request, allocation, expires_at=float("inf"))
        return allocation.node

    def fitting(self, request: PodRequest) -> list[str]:
        """The names of the nodes that can take the pod."""
        return sorted(self.ledger.fleet.names[row] for row in self.decider.candidates(request).rows)

    def scores(self, request: PodRequest) -> dict[str, float]:
        rows, scores = self.decider.candidates(request)
        return {self.ledger.fleet.names[row]: float(score) for row, score in zip(rows, scores, strict=True)}

    def node(self, request: PodRequest) -> str | None:
        allocation = self.decider.choose(request)
        return allocation.node if allocation else None

    def cards(self, request: PodRequest) -> list[list[str]]:
        """The cards that each container of the pod would get on the best node."""
        allocation = self.decider.choose(request)
        assert allocation is not None
        return [[share.uuid for share in container] for container in allocation.containers]

    def claimed(self, request: PodRequest, node: str = "") -> list[str] | None:
        """The cards that the pod would get as a whole, on this node or on the best; None where it does not fit."""
        allocation = (
            self.decider.allocate(request, self.ledger.fleet.row_of[node]) if node else self.decider.choose(request)
        )
        return None if allocation is None else [share.uuid for share in allocation.claimed]

    def refusal(self, request: PodRequest) -> Refusal:
        """The only refusal there is."""
        (refusal,) = self.decider.refusals(request)
        return refusal

    def sentences(self, request: PodRequest) -> list[str]:
        return [render(refusal) for refusal in self.decider.refusals(request)]
