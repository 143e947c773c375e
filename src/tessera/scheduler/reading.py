"""Nodes and pods of the API as the ledger takes them in. Pure.

The world does this with each event, and whoever checks the world does it with a fresh list: both must read alike, so
both read here. What cannot be read is told beside what can.
"""

from typing import NamedTuple

from tessera.engine.ledger import Ledger
from tessera.errors import InvalidInput
from tessera.kube.pods import OVER, Pod
from tessera.model.allocations import Allocation
from tessera.model.annotations import keys
from tessera.model.catalogue import Catalogue
from tessera.model.claims import without_claimable
from tessera.model.nodes import read_node
from tessera.model.pod_allocations import read_pod_allocation
from tessera.model.pods import read_pod_ref, read_pod_request
from tessera.model.requests import ContainerRequest, PodRef, PodRequest, Role
from tessera.scheduler.claims import Claims, annotations_of
from tessera.scheduler.nodes import CachedNode
from tessera.vendors.rules import refine

Complaints = tuple[str, ...]


class BoundPod(NamedTuple):
    """A pod on a node: what it asks for, and the cards that its annotations give it there, if they do."""

    ref: PodRef
    request: PodRequest
    node: str
    allocation: Allocation | None
    is_initialised: bool
    complaints: Complaints = ()

    @property
    def lacks_cards(self) -> bool:
        return self.allocation is None and self.request.wants_devices

    @property
    def held(self) -> Allocation:
        """What to charge by what the API says: without cards the pod still takes its place on the node."""
        return self.allocation or Allocation(self.node, tuple(() for _ in self.request.containers))


class Reader:
    def __init__(self, catalogue: Catalogue, claims: Claims) -> None:
        self.catalogue = catalogue
        self.allocation_keys = catalogue.allocation_keys()
        self._claims = claims

    def request_of(self, pod: object) -> PodRequest:
        """What the pod asks for, by its claim too. ClaimUnmet, if it has one that cannot be had, or not yet."""
        return self._claims.join(pod, read_pod_request(pod, self.catalogue, refine))

    def bound_pod(self, pod: Pod) -> BoundPod | None:
        """None, if the pod holds nothing: it is on no node, or over."""
        node = pod.spec.node_name
        if not node or pod.status.phase in OVER:
            return None
        complaints = list[str]()
        try:
            request = self._request_on_node(pod)
        except InvalidInput as error:
            complaints.append(str(error))
            request = PodRequest(containers=tuple(ContainerRequest(Role.APP, ()) for _ in _containers(pod)))
        try:
            allocation = read_pod_allocation(pod, request, self.allocation_keys, node)
        except InvalidInput as error:
            complaints.append(str(error))
            allocation = None
        return BoundPod(read_pod_ref(pod), request, node, allocation, _is_initialised(pod), tuple(complaints))

    def _request_on_node(self, pod: Pod) -> PodRequest:
        """A pod that has the cards of its claim keeps them, whatever becomes of the claim."""
        if keys.CLAIMED in annotations_of(pod):
            return without_claimable(read_pod_request(pod, self.catalogue, refine))
        return self.request_of(pod)

    def put_node(self, ledger: Ledger, node: CachedNode) -> Complaints:
        """Let the ledger have the node as it stands; one that cannot be read at all is InvalidInput, and unknown."""
        try:
            reading = read_node(node, self.catalogue)
            ledger.put_node(reading.node)
        except InvalidInput:
            ledger.drop_node(node.metadata.name)
            raise
        return reading.complaints


def put_pod(ledger: Ledger, pod: BoundPod) -> None:
    """Let the ledger have the pod as the API shows it."""
    ledger.adopt(pod.ref, pod.request, pod.held)
    if pod.is_initialised:
        ledger.settle(pod.ref.uid)


def _is_initialised(pod: Pod) -> bool:
    return any(said.type == "Initialized" and said.status == "True" for said in pod.status.conditions or ())


def _containers(pod: Pod) -> tuple[object, ...]:
    return (*(pod.spec.init_containers or ()), *pod.spec.containers)
