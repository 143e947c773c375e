"""Reading a cluster dump: nodes and pods as `kubectl get nodes,pods -A -o json` prints them.

The pods of the dump, wherever they run now, become the list that arrivals are drawn from; the nodes start empty. So
the dump answers "would another policy have held more of this?". What of it could not be used is told in the notes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from tessera.errors import InvalidInput, InvalidTrace
from tessera.model.catalogue import Catalogue
from tessera.model.devices import Node
from tessera.model.nodes import NodeReading, read_node
from tessera.model.pods import read_pod_ref, read_pod_request
from tessera.model.requests import DEFAULT_POLICY
from tessera.simulation.scenario import Arrival, Scenario, refuse_twins
from tessera.simulation.shares import Shares, has_size
from tessera.vendors.loading import load_catalogue
from tessera.vendors.rules import refine

ENDED = ("Succeeded", "Failed")


class _List(msgspec.Struct):
    items: list[dict[str, Any]]


def read_dump(file: Path) -> Scenario:
    items = _items(file)
    vendors = load_catalogue()
    try:
        readings = [read_node(item, vendors) for item in items if item.get("kind") == "Node"]
        nodes = tuple(_with_sized_cards(reading) for reading in readings)
        shares = Shares(nodes)
        pods = [_arrival(item, vendors, shares) for item in items if item.get("kind") == "Pod" and not _has_ended(item)]
    except InvalidInput as error:
        raise InvalidTrace(f"{file}: {error}") from error
    refuse_twins(file, nodes)
    complaints = [complaint for reading in readings for complaint in reading.complaints]
    if not sum(len(node.devices) for node in nodes):
        reason = complaints[0] if complaints else "expected a register annotation on at least one"
        raise InvalidTrace(f"{file}: no node has registered a usable card; {reason}")
    if not sum(pod.milli for pod in pods):
        raise InvalidTrace(f"{file}: no pod asks for a card, expected at least one")
    return Scenario(
        file.name, nodes, tuple(sorted(pods, key=lambda pod: pod.name)), (*_impossible(pods, shares), *complaints)
    )


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


def _with_sized_cards(reading: NodeReading) -> Node:
    node = reading.node
    return msgspec.structs.replace(node, devices=tuple(card for card in node.devices if has_size(card)))


def _arrival(pod: dict[str, Any], vendors: Catalogue, shares: Shares) -> Arrival:
    request = msgspec.structs.replace(read_pod_request(pod, vendors, refine), policy=DEFAULT_POLICY)
    return Arrival(str(read_pod_ref(pod)), request, shares.of_pod(request))


def _impossible(pods: Sequence[Arrival], shares: Shares) -> tuple[str, ...]:
    names = [pod.name for pod in pods if not shares.could_hold(pod.request)]
    if not names:
        return ()
    if len(names) == 1:
        return (f"{names[0]} asks for cards that no node of the dump has",)
    return (f"{len(names)} pods ask for cards that no node of the dump has, the first is {names[0]}",)
