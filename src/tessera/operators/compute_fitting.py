"""Whether a pod that finds no node could ever find one: tried on the nodes as they are, with nobody on them. Pure.

What passes by itself, a node that is not ready or a card that is cordoned, is no reason to give up. Neither is a
cluster without nodes, which may be about to get some, nor a node of whose cards nobody has told yet. A resource that is
none of ours comes with somebody's plugin: a node that we know and that does not list it will not have it by waiting.
What comes from a driver by a device class stands on no node, and the scheduler does not say of it that it is
insufficient.
"""

from collections.abc import Iterable, Sequence, Set
from datetime import datetime, timedelta

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.errors import InvalidInput
from tessera.model.annotations.keys import CLAIM, INVENTORY, LATE_BINDING, LIMITS_HELD
from tessera.model.catalogue import Catalogue
from tessera.model.nodes import NodeDocument, NodeMetadata, read_node
from tessera.model.pod_documents import NO_RESOURCES, read_document
from tessera.model.pods import read_pod_request
from tessera.model.quantities import parse_quantity
from tessera.model.refusals import Reason, Refusal
from tessera.model.requests import DEFAULT_POLICY
from tessera.operators.compute_pods import ComputePod, words_of_scheduler
from tessera.vendors.rules import refine

LONG_THERE = timedelta(minutes=10)
LASTING = frozenset(
    {
        Reason.NODE_SELECTOR,
        Reason.HOST_CPU,
        Reason.HOST_MEMORY,
        Reason.TOO_FEW_CARDS,
        Reason.CARD_TYPE,
        Reason.CARD_UUID,
        Reason.CARD_MEMORY,
        Reason.CARD_CORES,
        Reason.CARD_NUMA,
        Reason.CARDS_TOGETHER,
    }
)


class DatedMetadata(NodeMetadata, frozen=True, kw_only=True, rename="camel"):
    creation_timestamp: datetime | None = None


class DatedNode(NodeDocument, frozen=True, kw_only=True, rename="camel"):
    """A node, and since when it is there."""

    metadata: DatedMetadata


class EmptyNodes:
    """The nodes of a cluster with nobody on them. Made once for many pods: there may be thousands of nodes."""

    def __init__(self, nodes: Sequence[DatedNode], surveyed: Set[str], catalogue: Catalogue) -> None:
        """A node that cannot be read may still do. Of those that are `surveyed` it is known which cards they have."""
        self._catalogue = catalogue
        self._surveyed = surveyed
        self._count = len(nodes)
        self._is_readable = True
        self._listed = {node.metadata.name: _listed(node) for node in nodes if node.metadata.name in surveyed}
        ledger = Ledger()
        try:
            for node in nodes:
                ledger.put_node(read_node(node, catalogue).node)
        except InvalidInput:
            self._is_readable = False
        self._decider = Decider(ledger, PolicyBook(ledger.fleet, ledger.live, default=DEFAULT_POLICY))

    def can_never_hold(self, pod: ComputePod) -> bool:
        """A pod with a claim is judged by its claim."""
        annotations = pod.metadata.annotations or {}
        if CLAIM in annotations or not self._is_readable:
            return False
        document = {"metadata": {"name": pod.name, "annotations": annotations}, "spec": pod.spec}
        try:
            request = read_pod_request(document, self._catalogue, refine)
            foreign = find_foreign(document, self._catalogue)
        except InvalidInput:
            return False
        refusing = {refusal.where for refusal in self._decider.refusals(request) if self._is_lasting(refusal)}
        insufficient = {key for key in foreign if f"Insufficient {key}" in words_of_scheduler(pod)}
        lacking = {name for name, listed in self._listed.items() if not insufficient <= listed}
        return 0 < self._count == len(refusing | lacking)

    def _is_lasting(self, refusal: Refusal) -> bool:
        if refusal.reason is Reason.NO_CARDS:
            return refusal.where in self._surveyed
        return refusal.reason in LASTING


def find_foreign(pod: object, catalogue: Catalogue) -> frozenset[str]:
    """The resources that a pod asks for and that neither Kubernetes nor a vendor of ours knows."""
    spec = read_document(pod).spec
    asked = (
        amount
        for container in (*(spec.init_containers or ()), *spec.containers)
        for amount in (container.resources or NO_RESOURCES).first_of_requests().items()
    )
    return frozenset(
        key for key, amount in asked if "/" in key and catalogue.by_resource(key) is None and parse_quantity(amount)
    )


def _listed(node: NodeDocument) -> frozenset[str]:
    """Also what it has none of for now, because its plugin is away."""
    status = node.status
    return frozenset({**(status.capacity or {}), **(status.allocatable or {})} if status else ())


def find_surveyed(nodes: Iterable[DatedNode], catalogue: Catalogue, now: datetime) -> frozenset[str]:
    """Nodes of which it is known which cards they have.

    An agent says nothing of a node without cards. So where agents are at work, a node that has been there for long and
    of which nothing is said has none; where nobody has said anything of any node, nothing is known.
    """
    told, untold = set[str](), set[str]()
    for node in nodes:
        if _is_inventoried(node, catalogue):
            told.add(node.metadata.name)
        elif (since := node.metadata.creation_timestamp) is not None and now - since >= LONG_THERE:
            untold.add(node.metadata.name)
    return frozenset(told | untold if told else told)


def _is_inventoried(node: NodeDocument, catalogue: Catalogue) -> bool:
    """Whether an agent, or the plugin of a vendor, has told what the node has."""
    said = node.metadata.annotations or {}
    registers = (key for vendor in catalogue for key in vendor.annotations.registers())
    if INVENTORY in said or any(key in said for key in registers):
        return True
    conditions = node.status.conditions if node.status else ()
    return any(one.type in (LIMITS_HELD, LATE_BINDING) for one in conditions or ())
