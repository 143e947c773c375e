"""What each pod asks for, and which cards it holds by its annotations; what cannot be read is told."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tessera.engine.charges import Charge, charges_of
from tessera.errors import InvalidInput
from tessera.kube.objects import Identity, identify
from tessera.kube.pods import OVER
from tessera.model.allocations import Allocation
from tessera.model.annotations.binding import AllocationKeys
from tessera.model.annotations.keys import CLAIM, PIN
from tessera.model.catalogue import Catalogue
from tessera.model.claims import without_claimable
from tessera.model.pod_allocations import read_pod_allocation
from tessera.model.pods import read_pod_ref, read_pod_request
from tessera.model.requests import ContainerRequest, PodRef, PodRequest, Role
from tessera.vendors.rules import refine
from tessera.views.documents import ViewedPod


class Holding(NamedTuple):
    """A pod with what it asks for and what it holds. `allocation` is None where no card was given to it.

    `claim` is the GpuClaim that it names; what its containers say of the same cards then asks for no more.
    """

    pod: ViewedPod
    ref: PodRef
    request: PodRequest
    allocation: Allocation | None
    complaints: tuple[str, ...] = ()
    claim: str = ""

    @property
    def concerns_cards(self) -> bool:
        return bool(self.request.wants_devices or self.claim or self.allocation is not None or self.complaints)

    @property
    def is_over(self) -> bool:
        return self.pod.status.phase in OVER

    def charges(self) -> Mapping[str, Charge]:
        """What it takes of each card by UUID; nothing once it is over."""
        if self.allocation is None or self.is_over:
            return {}
        roles = [container.role for container in self.request.containers]
        return charges_of(self.allocation, roles, initialised=self.pod.status.is_true("Initialized"))


class HoldingReader:
    """Reads each state of a pod once: who watches asks about all of them again whenever one changes."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._keys = catalogue.allocation_keys()
        self._known: dict[Identity, Holding] = {}

    def read(self, pods: Iterable[ViewedPod]) -> tuple[Holding, ...]:
        """The pods that ask for cards, hold some, or ask in words that cannot be read."""
        by_state = {identify(pod): pod for pod in pods}
        self._known = {state: self._known.get(state) or self._read(pod) for state, pod in by_state.items()}
        return tuple(holding for holding in self._known.values() if holding.concerns_cards)

    def _read(self, pod: ViewedPod) -> Holding:
        return _read_holding(pod, self._catalogue, self._keys)


def read_holdings(pods: Iterable[ViewedPod], catalogue: Catalogue) -> tuple[Holding, ...]:
    """As `HoldingReader.read`, for whoever asks once."""
    return HoldingReader(catalogue).read(pods)


def _read_holding(pod: ViewedPod, catalogue: Catalogue, keys: Mapping[str, AllocationKeys]) -> Holding:
    complaints = list[str]()
    try:
        request = read_pod_request(pod, catalogue, refine)
    except InvalidInput as error:
        complaints.append(str(error))
        request = PodRequest(containers=tuple(ContainerRequest(Role.APP) for _ in pod.containers))
    allocation = None
    if pod.spec.node_name:
        try:
            allocation = read_pod_allocation(pod, request, keys, pod.spec.node_name)
        except InvalidInput as error:
            complaints.append(str(error))
    said = pod.metadata.annotations or {}
    claim = said.get(CLAIM) or said.get(PIN) or ""
    if claim:
        request = without_claimable(request)
    return Holding(pod, read_pod_ref(pod), request, allocation, tuple(complaints), claim)
