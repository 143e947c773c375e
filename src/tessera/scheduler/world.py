"""The cluster as the last events tell it: the ledger that follows nodes and pods, and who decides over it.

Its methods are the handlers of informers and never wait. What the API shows is so, even where it contradicts us; what
cannot be read is told, and does not hide the rest.
"""

from collections.abc import Callable, Mapping

import structlog

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger, State
from tessera.engine.policies import PolicyBook
from tessera.errors import InvalidInput
from tessera.kube.caching import Change
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.pods import Pod
from tessera.model.allocations import Allocation
from tessera.model.annotations.binding import read_allocation
from tessera.model.catalogue import Catalogue
from tessera.model.nodes import read_node
from tessera.model.pods import read_pod_ref, read_pod_request
from tessera.model.quotas import Limits, read_quotas
from tessera.model.requests import ContainerRequest, PodRequest, PolicyChoice, Role
from tessera.scheduler.nodes import CachedNode
from tessera.vendors.rules import refine

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
OVER = frozenset({"Succeeded", "Failed"})


class World:
    def __init__(self, catalogue: Catalogue, *, default: PolicyChoice) -> None:
        self.catalogue = catalogue
        self.ledger = Ledger()
        self.policies = PolicyBook(self.ledger.fleet, self.ledger.live, default=default)
        self.decider = Decider(self.ledger, self.policies)
        self.allocation_keys = catalogue.allocation_keys()
        self.complaints: dict[str, tuple[str, ...]] = {}
        self.freed: Callable[[], None] = lambda: None  # told when there may be room that was not there before
        self._quotas: dict[ObjectKey, Document] = {}
        self._limits: dict[str, dict[str, Limits]] = {}

    def request_of(self, pod: object) -> PodRequest:
        return read_pod_request(pod, self.catalogue, refine)

    def concerns(self, pod: object) -> bool:
        """Whether the pod asks for cards; one that cannot be read does not."""
        try:
            return self.request_of(pod).wants_devices
        except InvalidInput:
            return False

    def limits_of(self, namespace: str) -> Mapping[str, Limits]:
        return self._limits.get(namespace, {})

    def node_changed(self, change: Change[CachedNode]) -> None:
        name = change.key.name
        if change.after is None:
            self.ledger.drop_node(name)
            self._complain(f"node {name}", ())
            return
        try:
            reading = read_node(change.after, self.catalogue)
            self.ledger.put_node(reading.node)
        except InvalidInput as error:
            self.ledger.drop_node(name)
            self._complain(f"node {name}", (str(error),))
            return
        self._complain(f"node {name}", reading.complaints)
        self.freed()

    def pod_changed(self, change: Change[Pod]) -> None:
        pod = change.after
        if pod is None:
            gone = change.before
            self.ledger.release((gone and gone.metadata.uid) or "")
            self._complain(f"pod {change.key}", ())
            self.freed()
            return
        uid = pod.metadata.uid or ""
        if pod.status.phase in OVER:
            self.ledger.release(uid)
        elif pod.spec.node_name:
            self._adopt(pod, uid, pod.spec.node_name)
            return
        self.freed()

    def quota_changed(self, change: Change[Document]) -> None:
        if change.after is None:
            self._quotas.pop(change.key, None)
        else:
            self._quotas[change.key] = change.after
        namespace = change.key.namespace
        theirs = [quota for key, quota in self._quotas.items() if key.namespace == namespace]
        try:
            self._limits[namespace] = read_quotas(theirs, self.catalogue)
            self._complain(f"quotas of {namespace}", ())
            self.freed()
        except InvalidInput as error:
            self._complain(f"quotas of {namespace}", (str(error),))

    def _adopt(self, pod: Pod, uid: str, node: str) -> None:
        """Charge what the pod holds. What it once held it still holds, whatever becomes of its annotations."""
        ref, complaints = read_pod_ref(pod), list[str]()
        try:
            request = self.request_of(pod)
        except InvalidInput as error:
            complaints.append(str(error))
            request = PodRequest(containers=tuple(ContainerRequest(Role.APP, ()) for _ in _containers(pod)))
        try:
            allocation = self._allocation_of(pod, request, node)
        except InvalidInput as error:
            complaints.append(str(error))
            allocation = None
        known = self.ledger.holding(uid)
        if allocation is None and known is not None and known.state is State.BOUND and known.allocation.shares:
            complaints.append(f"pod {ref} holds cards on {node} that its annotations no longer name; they stay taken")
        else:
            self.ledger.adopt(ref, request, allocation or Allocation(node, tuple(() for _ in request.containers)))
        if _is_initialised(pod):
            self.ledger.settle(uid)
        self._complain(f"pod {ref}", tuple(complaints))

    def _allocation_of(self, pod: Pod, request: PodRequest, node: str) -> Allocation | None:
        """The cards that the pod's annotations give it on its node, if they do."""
        annotations = {key: value for key, value in (pod.metadata.annotations or {}).items() if isinstance(value, str)}
        asking = positions_asking(request)
        where, count = f"pod {read_pod_ref(pod)}", len(request.containers)
        return read_allocation(annotations, self.allocation_keys, count, where, asking=asking, node=node)

    def _complain(self, where: str, complaints: tuple[str, ...]) -> None:
        if self.complaints.get(where, ()) == complaints:
            return
        if complaints:
            self.complaints[where] = complaints
            log.warning("cannot be read", where=where, complaints=list(complaints))
        else:
            del self.complaints[where]


def _is_initialised(pod: Pod) -> bool:
    return any(said.type == "Initialized" and said.status == "True" for said in pod.status.conditions or ())


def _containers(pod: Pod) -> tuple[object, ...]:
    return (*(pod.spec.init_containers or ()), *pod.spec.containers)


def positions_asking(request: PodRequest) -> dict[str, list[int]]:
    """Which containers ask for cards of each vendor, by position."""
    positions: dict[str, list[int]] = {}
    for position, container in enumerate(request.containers):
        for device in container.devices:
            positions.setdefault(device.vendor, []).append(position)
    return positions
