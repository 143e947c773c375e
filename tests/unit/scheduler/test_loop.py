"""Pods in turn without kube-scheduler: who is first, who waits and hears why, who is tried again."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tessera.errors import BindRefused, KubeError
from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.kube.reconciler import Again
from tessera.kube.timing import SYSTEM_CLOCK
from tessera.model.extender import BindingArgs
from tessera.scheduler.loop import Loop, in_order
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.other_resources import OtherResources
from tessera.scheduler.phases import Phases
from tests.unit.scheduler.cluster import CATALOGUE, a_pod, a_world, node_document, see

pytestmark = pytest.mark.asyncio
ONE_CARD = "1xA100-SXM4-80GB"


class Bed:
    """A loop whose binder writes to no API; `bound` and `told` are what became of pods."""

    def __init__(self, *, resources: dict[str, str] | None = None, **cards: str) -> None:
        self.world = a_world(**cards)
        self.nodes = [self._node(name, plan, resources or {}) for name, plan in cards.items()]
        self.bound: list[tuple[str, str]] = []
        self.told: list[tuple[str, str]] = []
        self.problem: str = ""
        self.while_bound: Callable[[], None] = lambda: None
        self.is_deaf = False
        self.wanted = 0
        self._pods: dict[ObjectKey, Pod] = {}
        others = OtherResources(lambda key: CATALOGUE.by_resource(key) is not None, self._pods_on)
        self.phases = Phases(self.world)
        self.loop = Loop(
            self.phases,
            self,  # type: ignore[arg-type]
            others,
            self,
            schedulers=("hami-scheduler",),
            nodes=lambda: self.nodes,
        )
        self.loop.wanted = self._want

    @staticmethod
    def _node(name: str, plan: str, resources: dict[str, str]) -> CachedNode:
        document = node_document(name, plan)
        document["status"]["allocatable"] |= resources
        return msgspec.convert(document, CachedNode)

    def _pods_on(self, node: str) -> list[Pod]:
        return [pod for pod in self._pods.values() if pod.spec.node_name == node]

    def _want(self) -> None:
        self.wanted += 1

    def see(self, name: str, **more: Any) -> None:
        """The pod is in the API, new or changed."""
        document = a_pod(name, **{"schedulerName": "hami-scheduler", **more})
        pod, key = msgspec.convert(document, Pod), ObjectKey("default", name)
        self.loop.pod_changed(Change(key, self._pods.get(key), pod))
        self._pods[key] = pod
        see(self.world, document)

    def see_gone(self, name: str) -> None:
        key = ObjectKey("default", name)
        before = self._pods.pop(key)
        self.loop.pod_changed(Change(key, before, None))
        self.world.pod_changed(Change(key, before, None))

    async def bind(self, args: BindingArgs) -> None:
        """As the real one: the ledger knows at once, the watch tells later."""
        if self.problem:
            raise BindRefused(self.problem)
        self.bound.append((args.pod_name, args.node))
        self.world.ledger.commit(args.pod_uid)
        self.while_bound()

    def placed(self, pod: Pod, node: str) -> None:
        assert (pod.metadata.name, node) in self.bound

    async def not_placed(self, pod: Pod, why: str) -> None:
        if self.is_deaf:
            raise KubeError("the API server is away")
        self.told.append((pod.metadata.name or "", why))

    async def turn(self) -> Again | None:
        return await self.loop.place_waiting("all")


async def test_pods_are_placed_by_the_ledger_and_none_is_promised_what_another_holds():
    bed = Bed(a=ONE_CARD, b=ONE_CARD)
    for name in ("one", "two", "three"):
        bed.see(name)
    assert await bed.turn() is None
    assert bed.bound == [("one", "a"), ("three", "b")]
    assert bed.told == [("two", "0/2 nodes are available: 2 node(s): 1 card that nobody uses wanted, 0 idle.")]


async def test_who_matters_most_is_first_and_then_who_came_first():
    def pod(name: str, created: str, priority: int) -> Pod:
        head = {"name": name, "namespace": "default", "creationTimestamp": created}
        return msgspec.convert({"metadata": head, "spec": {"priority": priority, "containers": []}}, Pod)

    pods = [pod("late", "2026-01-02", 0), pod("early", "2026-01-01", 0), pod("great", "2026-01-03", 9)]
    assert [one.metadata.name for one in in_order(pods)] == ["great", "early", "late"]


async def test_a_pod_without_cards_is_placed_where_its_host_has_room():
    bed = Bed(a=ONE_CARD, b="")
    bed.see("plain", nodeSelector={"kubernetes.io/hostname": "b"}, containers=[{"name": "main"}])
    await bed.turn()
    assert bed.bound == [("plain", "b")]
    bed.see("vast", containers=[{"name": "main", "resources": {"requests": {"cpu": "1000"}}}])
    await bed.turn()
    assert bed.told == [("vast", "0/2 nodes are available: 2 Insufficient cpu.")]


@pytest.mark.parametrize(
    "held",
    [{"schedulerName": "another"}, {"schedulingGates": [{"name": "wait"}]}, {"nodeName": "a"}],
)
async def test_who_is_not_ours_to_place_is_left_alone(held: dict[str, Any]):
    bed = Bed(a=ONE_CARD)
    bed.see("web", **held)
    await bed.turn()
    assert (bed.bound, bed.told, bed.wanted) == ([], [], 0)


async def test_a_gate_that_opens_lets_the_pod_through():
    bed = Bed(a=ONE_CARD)
    bed.see("web", schedulingGates=[{"name": "wait"}])
    bed.see("web")
    assert bed.wanted == 1
    await bed.turn()
    assert bed.bound == [("web", "a")]


async def test_the_same_words_are_told_once_and_other_words_again():
    bed = Bed(a=ONE_CARD)
    bed.see("web", count=2)
    await bed.turn()
    await bed.turn()
    assert len(bed.told) == 1
    bed.see("web", count=3)
    assert bed.wanted == 2
    await bed.turn()
    assert [why.partition("available: ")[2] for _, why in bed.told] == [
        "1 node(s): 2 cards wanted, the node has 1.",
        "1 node(s): 3 cards wanted, the node has 1.",
    ]


async def test_what_changes_nothing_wakes_nobody():
    bed = Bed(a=ONE_CARD)
    bed.see("web", count=2)
    bed.see("web", count=2)
    assert bed.wanted == 1


async def test_a_bind_that_fails_is_told_and_tried_again():
    bed = Bed(a=ONE_CARD)
    bed.problem = "the API server is away"
    bed.see("web")
    assert isinstance(await bed.turn(), Again)
    assert bed.told == [("web", "the API server is away")]
    bed.problem = ""
    assert await bed.turn() is None
    assert bed.bound == [("web", "a")]


async def test_a_bind_that_fails_keeps_nothing_from_others():
    bed = Bed(a=ONE_CARD)
    bed.problem = "the pod is gone"
    bed.see("gone")
    assert isinstance(await bed.turn(), Again)
    bed.see_gone("gone")
    bed.problem = ""
    bed.see("web")
    assert await bed.turn() is None
    assert bed.bound == [("web", "a")]


async def test_who_is_refused_because_of_what_was_offered_to_another_is_tried_again_when_that_is_over():
    bed = Bed(a=ONE_CARD)
    bed.phases.place(a_pod("slow"), ["a"], SYSTEM_CLOCK.monotonic_s())
    bed.see("web")
    assert isinstance(await bed.turn(), Again)
    assert not bed.bound


async def test_a_pod_that_goes_and_comes_again_while_others_have_their_turn_is_another_one():
    bed = Bed(a=ONE_CARD, b=ONE_CARD)
    bed.see("web", uid="uid-old")

    def replace() -> None:
        bed.see_gone("web")
        bed.see("web", uid="uid-new")

    bed.while_bound = replace
    await bed.turn()
    assert len(bed.loop) == 1, "the new one still waits"
    bed.while_bound = lambda: None
    await bed.turn()
    assert [name for name, _ in bed.bound] == ["web", "web"]
    assert len(bed.loop) == 0


async def test_a_pod_that_cannot_be_read_is_told_so_and_hinders_nobody():
    bed = Bed(a=ONE_CARD)
    bed.see("odd", containers=[{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "x"}}}])
    bed.see("web")
    await bed.turn()
    assert bed.bound == [("web", "a")]
    assert bed.told[0][0] == "odd"
    assert 'nvidia.com/gpu is "x"' in bed.told[0][1]


async def test_resources_that_are_nobodys_cards_are_counted():
    foo = {"name": "main", "resources": {"limits": {"example.com/foo": "1"}}}
    bed = Bed(a=ONE_CARD, resources={"example.com/foo": "2"})
    bed.see("holder", nodeName="a", containers=[foo])
    bed.see("one", containers=[foo])
    await bed.turn()
    assert bed.bound == [("one", "a")]
    bed.see("one", nodeName="a", containers=[foo])
    bed.see("two", containers=[foo])
    await bed.turn()
    assert bed.told == [("two", "0/1 nodes are available: 1 Insufficient example.com/foo.")]
    bed.see_gone("holder")
    await bed.turn()
    assert bed.bound[-1] == ("two", "a")


async def test_an_init_container_runs_before_the_others_and_is_not_added_to_them():
    foo = {"name": "main", "resources": {"limits": {"example.com/foo": "2"}}}
    bed = Bed(a=ONE_CARD, resources={"example.com/foo": "2"})
    bed.see("web", containers=[foo], initContainers=[{**foo, "name": "first"}])
    await bed.turn()
    assert bed.bound == [("web", "a")]


async def test_a_sidecar_runs_beside_the_others_and_is_added_to_them():
    foo = {"name": "main", "resources": {"limits": {"example.com/foo": "1"}}}
    sidecar = {**foo, "name": "side", "restartPolicy": "Always"}
    bed = Bed(a=ONE_CARD, resources={"example.com/foo": "2"})
    bed.see("fits", containers=[foo], initContainers=[sidecar])
    bed.see("larger", containers=[{"name": "main"}], initContainers=[sidecar, {**foo, "name": "after"}, sidecar])
    await bed.turn()
    assert bed.bound == [("fits", "a")]


async def test_two_pods_of_one_turn_are_not_promised_the_same():
    foo = {"name": "main", "resources": {"limits": {"example.com/foo": "1"}}}
    bed = Bed(a=ONE_CARD, resources={"example.com/foo": "1"})
    bed.see("one", containers=[foo])
    bed.see("two", containers=[foo])
    await bed.turn()
    assert bed.bound == [("one", "a")]
    bed.see_gone("one")
    await bed.turn()
    assert bed.bound[-1] == ("two", "a"), "who is gone before the watch showed it there holds nothing"


async def test_a_port_of_a_node_is_given_to_one_pod():
    listening = {"name": "main", "ports": [{"containerPort": 80, "hostPort": 8080}]}
    bed = Bed(a=ONE_CARD)
    bed.see("one", containers=[listening])
    bed.see("two", containers=[listening])
    bed.see("udp", containers=[{"name": "main", "ports": [{"hostPort": 8080, "protocol": "UDP"}]}])
    bed.see("none", containers=[{"name": "main", "ports": [{"containerPort": 8080}]}])
    await bed.turn()
    assert sorted(name for name, _ in bed.bound) == ["none", "one", "udp"]
    waits = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    assert bed.told == [("two", waits)]


async def test_what_could_not_be_bound_is_promised_to_nobody():
    foo = {"name": "main", "resources": {"limits": {"example.com/foo": "1"}}}
    bed = Bed(a=ONE_CARD, resources={"example.com/foo": "1"})
    bed.problem = "the API server is away"
    bed.see("one", containers=[foo])
    await bed.turn()
    bed.problem = ""
    bed.see("aaa", containers=[foo])
    await bed.turn()
    assert bed.bound == [("aaa", "a")]


async def test_a_pod_that_is_bound_is_left_alone_before_the_watch_has_told():
    bed = Bed(a=ONE_CARD, b=ONE_CARD)
    bed.see("web")
    await bed.turn()
    bed.see("web")
    await bed.turn()
    assert (bed.bound, bed.told) == ([("web", "a")], [])


async def test_a_word_that_cannot_be_written_hinders_nobody_and_is_said_later():
    bed = Bed(a=ONE_CARD)
    bed.is_deaf = True
    bed.see("greedy", count=2)
    bed.see("web")
    assert isinstance(await bed.turn(), Again)
    assert bed.bound == [("web", "a")]
    bed.is_deaf = False
    assert await bed.turn() is None
    assert [name for name, _ in bed.told] == ["greedy"]
