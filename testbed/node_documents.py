"""A simulated Node as the API has it, for kwok to keep and for whoever needs Nodes without an API server."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tessera.model.catalogue import Catalogue
from tessera.vendors.managers import Inventory
from tessera.vendors.reporting import report_capacity, report_cards
from tessera.vendors.simulated import parse_plan, simulate


class NodeShape(NamedTuple):
    """What a simulated node has; `cards` as in `tessera simulate`, for example "8xA100-SXM4-80GB"."""

    cards: str = "8xA100-SXM4-80GB"
    cpu: str = "128"
    memory: str = "1Ti"
    pods: str = "250"
    labels: Mapping[str, str] = {"gpu": "on"}

    def inventory(self, node: str, catalogue: Catalogue) -> Inventory:
        return simulate(node, parse_plan(self.cards), catalogue)


EIGHT_CARDS = NodeShape()


def registered_node(name: str, shape: NodeShape, catalogue: Catalogue) -> dict[str, Any]:
    """A node whose agent has reported its cards."""
    inventory = shape.inventory(name, catalogue)
    return node_document(name, shape, inventory, catalogue, report_cards(name, inventory, catalogue))


def node_document(
    name: str, shape: NodeShape, inventory: Inventory, catalogue: Catalogue, annotations: Mapping[str, str]
) -> dict[str, Any]:
    """A node with these cards, whatever the shape says of cards."""
    room = {"cpu": shape.cpu, "memory": shape.memory, "pods": shape.pods, "ephemeral-storage": "1Ti"}
    room |= report_capacity(inventory, catalogue)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "type": "kwok",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": dict(annotations), "labels": {**labels, **shape.labels}},
        "status": {"capacity": room, "allocatable": room},
    }
