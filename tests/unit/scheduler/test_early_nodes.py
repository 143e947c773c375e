"""On a node without CDI, pods that could be mistaken for each other come one after the other."""

import msgspec
import pytest

from tessera.errors import BindRefused
from tessera.kube.pods import Pod
from tessera.model.pods import read_pod_ref
from tessera.model.requests import PodRef
from tessera.scheduler.early_nodes import EarlyNodes
from tessera.scheduler.nodes import CachedNode
from tests.unit.scheduler.cluster import a_pod, a_world, node_document

FOREVER = float("inf")


class Scene:
    """Node n1 with eight cards; `send` lets a pod be bound there, `take_in` lets its kubelet admit it."""

    def __init__(self, late_binding: str = "False") -> None:
        self.world = a_world(n1="8xT4")
        document = node_document("n1", "8xT4")
        document["status"].setdefault("conditions", []).append({"type": "TesseraLateBinding", "status": late_binding})
        self.node = msgspec.convert(document, CachedNode)
        self.pods: dict[str, Pod] = {}
        self.early = EarlyNodes(self.world, lambda _: self.node, lambda key: self.pods.get(key.name))

    def send(self, name: str, *, count: int = 1, expires_at: float = FOREVER) -> PodRef:
        pod = a_pod(name, memory=100, count=count)
        self.pods[name] = msgspec.convert(pod, Pod)
        ref, request = read_pod_ref(pod), self.world.request_of(pod)
        allocation = self.world.decider.allocate(request, 0)
        assert allocation is not None
        self.world.ledger.reserve(ref, request, allocation, expires_at=expires_at)
        return ref

    def take_in(self, name: str) -> None:
        status = msgspec.convert(
            {"conditions": [{"type": "Initialized", "status": "False"}]}, type(self.pods[name].status)
        )
        self.pods[name] = msgspec.structs.replace(self.pods[name], status=status)

    def ask(self, name: str = "next", *, count: int = 1) -> None:
        pod = a_pod(name, memory=200, count=count)
        self.early.check(read_pod_ref(pod), self.world.request_of(pod), "n1")


def test_a_pod_waits_for_one_that_asks_for_as_many_cards_and_is_on_its_way():
    scene = Scene()
    scene.send("first")
    with pytest.raises(BindRefused, match="has no CDI and is about to start default/first"):
        scene.ask()
    scene.ask(count=2)
    scene.take_in("first")
    scene.ask()


def test_a_pod_does_not_stand_in_its_own_way():
    scene = Scene()
    scene.send("first")
    scene.ask("first")


def test_neither_an_offer_nor_a_pod_that_is_gone_makes_another_wait():
    scene = Scene()
    scene.send("offered", expires_at=10.0)
    scene.ask()
    scene.send("gone")
    del scene.pods["gone"]
    scene.ask()


def test_on_a_node_with_cdi_nobody_waits():
    scene = Scene(late_binding="True")
    scene.send("first")
    scene.ask()
