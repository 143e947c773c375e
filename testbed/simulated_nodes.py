"""Nodes that exist in the API alone: kwok keeps them ready and lets pods run on them at once.

Real nodes come one at a time and need a machine; these come by the thousand and show how the product scales. Their
agents speak as real ones do.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.kinds import NODES
from tessera.vendors.loading import load_catalogue
from tessera.vendors.managers import Inventory
from tessera.vendors.reporting import report_capacity
from tessera.vendors.simulated import parse_plan, simulate
from testbed.agents import Agents
from testbed.building import Programs
from testbed.control_plane import ControlPlane
from testbed.machine import Machine

KEPT_BY_KWOK = "kwok.x-k8s.io/node"
AT_ONCE = 32


class NodeShape(NamedTuple):
    """What a simulated node has; `cards` as in `tessera simulate`, for example "8xA100-SXM4-80GB"."""

    cards: str = "8xA100-SXM4-80GB"
    cpu: str = "128"
    memory: str = "1Ti"
    pods: str = "250"
    labels: Mapping[str, str] = {"gpu": "on"}


EIGHT_CARDS = NodeShape()


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
        plan = parse_plan(shape.cards)
        inventories = {name: simulate(name, plan, self._catalogue) for name in names}
        asyncio.run(self._create({name: self._node(name, shape, found) for name, found in inventories.items()}))
        self.agents.set_cards(inventories)

    def _node(self, name: str, shape: NodeShape, inventory: Inventory) -> dict[str, Any]:
        room = {"cpu": shape.cpu, "memory": shape.memory, "pods": shape.pods, "ephemeral-storage": "1Ti"}
        room |= report_capacity(inventory, self._catalogue)
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "type": "kwok",
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "annotations": {KEPT_BY_KWOK: "fake"}, "labels": {**labels, **shape.labels}},
            "status": {"capacity": room, "allocatable": room},
        }

    async def _create(self, nodes: Mapping[str, dict[str, Any]]) -> None:
        turns = asyncio.Semaphore(AT_ONCE)

        async def create(client: Client, node: dict[str, Any]) -> None:
            async with turns:
                await client.create(NODES, node)

        async with Client(self._access) as client, asyncio.TaskGroup() as tasks:
            for node in nodes.values():
                tasks.create_task(create(client, node))

    def stop(self) -> None:
        self.agents.stop()
