"""A Kubernetes Node, as JSON gives it, read into what it has.

Cards come from our own inventory annotation where there is one, else from each vendor's register in whatever form it
was written. One broken card does not hide the others: what could not be read is told beside what could.
"""

from typing import Any

import msgspec

from tessera.errors import InvalidAnnotation, InvalidInventory, InvalidQuantity
from tessera.model.annotations import keys
from tessera.model.annotations.links import decode_links
from tessera.model.annotations.registers import read_register
from tessera.model.annotations.selectors import decode_cordon
from tessera.model.annotations.versioned import decode_inventory
from tessera.model.catalogue import Catalogue
from tessera.model.devices import Device, Host, Link, Node, Taint
from tessera.model.mismatches import explain_mismatch
from tessera.model.quantities import bytes_of, count_of, milli_of

DEFAULT_PODS = 110


class NodeReading(msgspec.Struct, frozen=True):
    node: Node
    complaints: tuple[str, ...] = ()


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class _Metadata(_Part, frozen=True, kw_only=True):
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


class _Condition(_Part, frozen=True, kw_only=True):
    type: str
    status: str


class _Status(_Part, frozen=True, kw_only=True):
    allocatable: dict[str, Any] | None = None
    capacity: dict[str, Any] | None = None
    conditions: tuple[_Condition, ...] | None = None


class _Document(_Part, frozen=True, kw_only=True):
    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


def read_node(node: object, vendors: Catalogue) -> NodeReading:
    """What the node has, and one sentence for each thing on it that could not be read."""
    try:
        document = msgspec.convert(node, _Document)
    except msgspec.ValidationError as error:
        raise InvalidInventory(f"node: {explain_mismatch(error, node)}") from None
    complaints: list[str] = []
    name, annotations = document.metadata.name, document.metadata.annotations or {}
    read = Node(
        name=name,
        host=_read_host(document),
        devices=_read_devices(name, annotations, vendors, complaints),
        links=_read_links(name, annotations, vendors, complaints),
        cordoned_uuids=frozenset(decode_cordon(annotations.get(keys.DEVICE_CORDON, ""))),
    )
    return NodeReading(read, tuple(complaints))


def _read_host(document: _Document) -> Host:
    status, spec = document.status, document.spec
    amounts = {**(status.capacity or {}), **(status.allocatable or {})}
    try:
        return Host(
            cpu_milli=milli_of(amounts.get("cpu", 0)),
            memory_bytes=bytes_of(amounts.get("memory", 0)),
            pods=count_of(amounts.get("pods", DEFAULT_PODS)),
            labels=tuple(sorted((document.metadata.labels or {}).items())),
            taints=tuple(Taint(taint.key, taint.value or "", taint.effect) for taint in spec.taints or ()),
            ready=all(condition.status == "True" for condition in status.conditions or () if condition.type == "Ready"),
            unschedulable=bool(spec.unschedulable),
        )
    except InvalidQuantity as error:
        raise InvalidInventory(f"node {document.metadata.name}: allocatable {error}") from None


def _read_devices(
    node: str, annotations: dict[str, str], vendors: Catalogue, complaints: list[str]
) -> tuple[Device, ...]:
    if keys.INVENTORY in annotations:
        try:
            return decode_inventory(annotations[keys.INVENTORY], f"node {node}: {keys.INVENTORY}")
        except InvalidAnnotation as error:
            complaints.append(str(error))
    devices: dict[str, Device] = {}
    for vendor in vendors:
        key = vendor.annotations.register
        if key is not None and key in annotations:
            where = f"node {node}: {key}"
            reading = read_register(annotations[key], vendor=vendor.name, where=where, node=node)
            complaints.extend(reading.complaints)
            devices |= {device.uuid: device for device in reading.devices if device.uuid not in devices}
    return tuple(devices.values())


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
