"""Nodes that exist in the API alone: kwok keeps them ready and lets pods run on them at once.

Real nodes come one at a time and need a machine; these come by the thousand and show how the product scales. Their
agents speak as real ones do.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.kinds import NODES
from tessera.kube.objects import Document
from tessera.vendors.loading import load_catalogue
from tessera.vendors.managers import Inventory
from testbed.agents import Agents
from testbed.building import Programs
from testbed.control_plane import ControlPlane
from testbed.creating import create_all
from testbed.machine import Machine
from testbed.node_documents import EIGHT_CARDS, NodeShape, node_document

KEPT_BY_KWOK = "kwok.x-k8s.io/node"


class SimulatedNode(NamedTuple):
    """A node whose cards are known one by one."""

    shape: NodeShape
    inventory: Inventory


class SimulatedNodes:
    def __init__(self, machine: Machine, programs: Programs, control_plane: ControlPlane) -> None:
        self._machine = machine
        self._programs = programs
        self._control_plane = control_plane
        self._catalogue = load_catalogue()
        self._access = find_access(control_plane.kubeconfig)
        self.agents = Agents(self._access)

    def start(self) -> None:
        kubeconfig = self._control_plane.kubeconfig_for("kwok", ["system:masters"])
        flags = {
            "kubeconfig": kubeconfig,
            "manage-nodes-with-annotation-selector": f"{KEPT_BY_KWOK}=fake",
            "cidr": self._machine.addresses.simulated_pods,
            "node-ip": self._machine.addresses.machine,
            "node-lease-duration-seconds": "40",
        }
        kwok = self._programs["kwok"]
        stages = [f"--config={stage}" for stage in sorted(kwok.parent.glob("*.yaml"))]
        self._machine.start("kwok", [kwok, *stages, *(f"--{name}={value}" for name, value in flags.items())])

    def add(self, names: Sequence[str], shape: NodeShape = EIGHT_CARDS) -> None:
        """Returns when all are registered and their agents have reported."""
        self.put({name: SimulatedNode(shape, shape.inventory(name, self._catalogue)) for name in names})

    def put(self, nodes: Mapping[str, SimulatedNode]) -> None:
        """The same for nodes that differ from each other."""
        kept = {KEPT_BY_KWOK: "fake"}
        documents = [node_document(name, *node, self._catalogue, kept) for name, node in nodes.items()]
        asyncio.run(self._create(documents))
        self.agents.set_cards({name: node.inventory for name, node in nodes.items()})

    async def _create(self, nodes: Sequence[Document]) -> None:
        async with Client(self._access) as client:
            await create_all(client, NODES, nodes)

    def stop(self) -> None:
        self.agents.stop()
