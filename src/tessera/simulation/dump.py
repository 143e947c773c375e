"""Reading a cluster dump: nodes and pods as `kubectl get nodes,pods -A -o json` prints them.

The pods of the dump, wherever they run now, become the list that arrivals are drawn from; the nodes start empty. So
the dump answers "would another policy have held more of this?".
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from tessera.engine.demand import accepts_type
from tessera.errors import InvalidInput, InvalidTrace
from tessera.model.catalogue import Catalogue
from tessera.model.devices import Node
from tessera.model.nodes import read_node
from tessera.model.pods import read_pod_ref, read_pod_request
from tessera.model.requests import DEFAULT_POLICY, DeviceRequest, PodRequest, Role
from tessera.simulation.scenario import CARD_MILLI, Arrival, Scenario
from tessera.vendors.loading import load_catalogue
from tessera.vendors.rules import refine

ENDED = ("Succeeded", "Failed")


class _List(msgspec.Struct):
    items: list[dict[str, Any]]


def read_dump(file: Path) -> Scenario:
    items = _items(file)
    vendors = load_catalogue()
    try:
        nodes = tuple(read_node(item, vendors).node for item in items if item.get("kind") == "Node")
        pods = [_arrival(item, vendors, nodes) for item in items if item.get("kind") == "Pod" and not _has_ended(item)]
    except InvalidInput as error:
        raise InvalidTrace(f"{file}: {error}") from error
    if not sum(len(node.devices) for node in nodes):
        raise InvalidTrace(f"{file}: no node has registered a card, expected a register annotation on at least one")
    if not sum(pod.milli for pod in pods):
        raise InvalidTrace(f"{file}: no pod asks for a card, expected at least one")
    return Scenario(file.name, nodes, tuple(sorted(pods, key=lambda pod: pod.name)))


def _items(file: Path) -> Sequence[dict[str, Any]]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_List).items
    except OSError as error:
        raise InvalidTrace(f"{file} cannot be read: {error.strerror}; give the path of a JSON file") from error
    except msgspec.MsgspecError as error:
        raise InvalidTrace(f"{file}: {error}; expected what kubectl get nodes,pods -A -o json prints") from error


def _has_ended(pod: dict[str, Any]) -> bool:
    status: Any = pod.get("status")
    return isinstance(status, dict) and cast(dict[str, Any], status).get("phase") in ENDED


def _arrival(pod: dict[str, Any], vendors: Catalogue, nodes: Sequence[Node]) -> Arrival:
    request = msgspec.structs.replace(read_pod_request(pod, vendors, refine), policy=DEFAULT_POLICY)
    return Arrival(str(read_pod_ref(pod)), request, _milli(request, nodes))


def _milli(request: PodRequest, nodes: Sequence[Node]) -> int:
    steady = [container for container in request.containers if container.role is not Role.INIT]
    return sum(_device_milli(device, nodes) for container in steady for device in container.devices)


def _device_milli(device: DeviceRequest, nodes: Sequence[Node]) -> int:
    """The share of the first card that would do, in thousandths."""
    for node in nodes:
        for card in node.devices:
            if card.vendor == device.vendor and accepts_type(device.selector, card.model):
                memory = CARD_MILLI * device.memory_on(card.memory_mib) // card.memory_mib
                cores = CARD_MILLI * device.cores_percent // card.cores_percent
                return device.count * min(max(memory, cores, 1), CARD_MILLI)
    return device.count * CARD_MILLI
