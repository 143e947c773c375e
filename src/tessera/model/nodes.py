"""A Kubernetes Node, as JSON gives it, read into what it has.

Cards come from our own inventory annotation where there is one, else from each vendor's register in whatever form it
was written, else from the node's capacity. One broken card does not hide the others: what could not be read is told
beside what could.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from tessera.errors import InvalidAnnotation, InvalidInventory, InvalidQuantity
from tessera.model.annotations import keys
from tessera.model.annotations.links import decode_links
from tessera.model.annotations.selectors import decode_cordon
from tessera.model.catalogue import Catalogue
from tessera.model.devices import Host, Link, Node, Taint
from tessera.model.mismatches import explain_mismatch, show
from tessera.model.node_cards import read_cards
from tessera.model.quantities import bytes_of, count_of, milli_of

DEFAULT_PODS = 110
_EXAMPLES = {
    "cpu": 'a quantity such as "15500m"',
    "memory": 'a quantity such as "64Gi"',
    "pods": 'a whole number such as "110"',
}


class NodeReading(msgspec.Struct, frozen=True):
    node: Node
    complaints: tuple[str, ...] = ()


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class NodeMetadata(_Part, frozen=True, kw_only=True):
    name: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Taint(_Part, frozen=True, kw_only=True):
    key: str
    value: str | None = None
    effect: str


class _Spec(_Part, frozen=True, kw_only=True):
    taints: tuple[_Taint, ...] | None = None
    unschedulable: bool | None = None


class NodeCondition(_Part, frozen=True, kw_only=True):
    type: str
    status: str


class NodeStatus(_Part, frozen=True, kw_only=True):
    allocatable: dict[str, Any] | None = None
    capacity: dict[str, Any] | None = None
    conditions: tuple[NodeCondition, ...] | None = None


class NodeDocument(_Part, frozen=True, kw_only=True):
    """The part of a Kubernetes Node that we read."""

    metadata: NodeMetadata
    spec: _Spec | None = None
    status: NodeStatus | None = None


_NO_SPEC = _Spec()
_NO_STATUS = NodeStatus()


def read_node(node: object, vendors: Catalogue) -> NodeReading:
    """What the node has, and one sentence for each thing on it that could not be read."""
    document = _read_document(node)
    name, annotations = document.metadata.name, document.metadata.annotations or {}
    status = document.status or _NO_STATUS
    cards = read_cards(name, annotations, status.capacity or {}, status.allocatable or {}, vendors)
    complaints = list(cards.complaints)
    read = Node(
        name=name,
        host=_read_host(document),
        devices=cards.devices,
        links=_read_links(name, annotations, vendors, complaints),
        cordoned_uuids=frozenset(decode_cordon(annotations.get(keys.DEVICE_CORDON, ""))),
    )
    return NodeReading(read, tuple(complaints))


def _read_document(node: object) -> NodeDocument:
    if isinstance(node, NodeDocument):
        return node
    try:
        return msgspec.convert(node, NodeDocument)
    except msgspec.ValidationError as error:
        raise InvalidInventory(f"node: {explain_mismatch(error, node)}") from None


def _read_host(document: NodeDocument) -> Host:
    status, spec = document.status or _NO_STATUS, document.spec or _NO_SPEC
    where = f"node {document.metadata.name}"
    return Host(
        cpu_milli=_read_amount(status, "cpu", milli_of, 0, where),
        memory_bytes=_read_amount(status, "memory", bytes_of, 0, where),
        pods=_read_amount(status, "pods", count_of, DEFAULT_PODS, where),
        labels=tuple(sorted((document.metadata.labels or {}).items())),
        taints=tuple(Taint(taint.key, taint.value or "", taint.effect) for taint in spec.taints or ()),
        ready=all(condition.status == "True" for condition in status.conditions or () if condition.type == "Ready"),
        unschedulable=bool(spec.unschedulable),
    )


def _read_amount(
    status: NodeStatus, resource: str, counting: Callable[[str | int | float], int], default: int, where: str
) -> int:
    """What the node has of a resource: allocatable, or all of it where nothing is said of that."""
    amounts = {**(status.capacity or {}), **(status.allocatable or {})}
    value = amounts.get(resource, default)
    try:
        return counting(value)
    except InvalidQuantity:
        named = "allocatable" if resource in (status.allocatable or {}) else "capacity"
        raise InvalidInventory(
            f"{where}: {named} {resource} is {show(value)}, expected {_EXAMPLES[resource]}"
        ) from None


def _read_links(node: str, annotations: dict[str, str], vendors: Catalogue, complaints: list[str]) -> tuple[Link, ...]:
    links: list[Link] = []
    for key in sorted({vendor.annotations.links for vendor in vendors if vendor.annotations.links}):
        if key in annotations:
            try:
                reading = decode_links(annotations[key], f"node {node}: {key}")
            except InvalidAnnotation as error:
                complaints.append(str(error))
                continue
            links.extend(reading.links)
            complaints.extend(reading.complaints)
    return tuple(links)
