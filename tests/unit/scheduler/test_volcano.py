"""Volcano's verbs. The requests are as its sources document them; the real one was never asked."""

import json
from typing import Any

import pytest

from tessera.errors import InvalidRequest
from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.scheduler.phases import Phases
from tessera.scheduler.volcano import HOLD_S, Volcano
from tessera.scheduler.world import World
from tests.unit.kube.clocks import FakeClock
from tests.unit.scheduler.cluster import a_pod, a_world, see

pytestmark = pytest.mark.asyncio
A100 = 81_920


class Bed:
    def __init__(self, **cards: str) -> None:
        self.world: World = a_world(**cards)
        self.phases = Phases(self.world)
        self.clock = FakeClock()
        self.is_ready = True
        self.volcano = Volcano(self.world, self.phases, is_ready=lambda: self.is_ready, clock=self.clock)

    async def ask(self, verb: str, **message: Any) -> dict[str, Any]:
        return json.loads(await self.volcano.verbs[verb](json.dumps(message).encode()))


def a_task(pod: dict[str, Any], node: str = "") -> dict[str, Any]:
    """A task as Volcano writes it: Go's field names, and far more than anybody reads."""
    return {
        "UID": pod["metadata"]["uid"],
        "Job": "default/train",
        "Name": pod["metadata"]["name"],
        "Namespace": "default",
        "TaskRole": "worker",
        "Resreq": {"MilliCPU": 1000, "Memory": 0, "ScalarResources": {"nvidia.com/gpu": 1000}, "MaxTaskNum": 0},
        "NodeName": node,
        "Status": 1,
        "Priority": 1,
        "Pod": pod,
    }


def a_node(name: str) -> dict[str, Any]:
    return {"Name": name, "Node": {"metadata": {"name": name}}, "Idle": {"MilliCPU": 64_000}, "Tasks": {}}


async def test_a_task_that_fits_has_an_empty_status_and_one_that_does_not_a_sentence():
    bed = Bed(a="1xA100-SXM4-80GB")
    fits = await bed.ask("predicate", task=a_task(a_pod(memory=4000)), node=a_node("a"))
    assert fits == {"status": "", "code": 0}
    large = await bed.ask("predicate", task=a_task(a_pod(memory=A100 + 1)), node=a_node("a"))
    assert large == {"status": "no card has 81921 MiB free, the roomiest has 81920 MiB", "code": 2}
    ghost = await bed.ask("predicate", task=a_task(a_pod()), node=a_node("ghost"))
    assert ghost == {"status": "the node has not registered any cards", "code": 2}


async def test_a_task_without_cards_fits_everywhere():
    plain = {"metadata": {"name": "web", "uid": "u"}, "spec": {"containers": [{"name": "main"}]}}
    assert await Bed().ask("predicate", task=a_task(plain), node=a_node("any")) == {"status": "", "code": 0}


async def test_a_quota_stands_in_the_way():
    bed = Bed(a="1xA100-SXM4-80GB")
    quota = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"limits.nvidia.com/gpumem": "1000"}}}
    bed.world.quota_changed(Change(ObjectKey("default", "q"), None, quota))
    said = await bed.ask("predicate", task=a_task(a_pod(memory=2000)), node=a_node("a"))
    assert said["status"] == "default: NVIDIA memory_mib would be 2000, the quota allows 1000"


async def test_nodes_are_scored_by_name_up_to_a_hundred():
    bed = Bed(a="2xA100-SXM4-80GB", b="2xA100-SXM4-80GB")
    said = await bed.ask("prioritize", task=a_task(a_pod("one")), nodes=[a_node("b"), a_node("a"), a_node("ghost")])
    assert said == {"nodeScore": {"b": 99.9, "a": 100.0, "ghost": 0.0}, "errorMessage": ""}


async def test_allocated_cards_are_held_for_the_task_until_it_is_deallocated():
    bed = Bed(a="1xA100-SXM4-80GB")
    first = a_task(a_pod("first"), node="a")
    assert await bed.ask("allocateFunc", task=first) == {"errorMessage": ""}
    second = {"task": a_task(a_pod("second")), "node": a_node("a")}
    assert (await bed.ask("predicate", **second))["code"] == 2, "the only card is held"
    assert await bed.ask("deallocateFunc", task=first) == {"errorMessage": ""}
    assert (await bed.ask("predicate", **second))["code"] == 0


async def test_a_hold_ends_by_itself():
    bed = Bed(a="1xA100-SXM4-80GB")
    await bed.ask("allocateFunc", task=a_task(a_pod("lost"), node="a"))
    second = {"task": a_task(a_pod("second")), "node": a_node("a")}
    bed.clock.advance(HOLD_S - 1)
    assert (await bed.ask("predicate", **second))["code"] == 2
    bed.clock.advance(1)
    assert (await bed.ask("predicate", **second))["code"] == 0


async def test_the_pod_that_volcano_binds_is_offered_the_cards_that_were_held():
    bed = Bed(a="4xA100-SXM4-80GB")
    await bed.ask("allocateFunc", task=a_task(a_pod("held"), node="a"))
    held = bed.world.ledger.holding("uid-held")
    assert held is not None
    see(bed.world, a_pod("held", nodeName="a"))
    assert bed.world.ledger.holding("uid-held") is held, "the watch tells of the node before the cards are written"
    assert bed.phases.offers.take("uid-held", held.request, "a") == held.allocation


async def test_a_pod_that_cannot_be_read_and_a_scheduler_that_is_not_ready_are_errors_in_the_answer():
    bed = Bed(a="1xA100-SXM4-80GB")
    odd = a_pod()
    odd["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "8000Mi"
    said = await bed.ask("predicate", task=a_task(odd), node=a_node("a"))
    assert said["code"] == 1
    assert "expected a whole number of MiB" in said["status"]
    bed.is_ready = False
    assert "still reading" in (await bed.ask("predicate", task=a_task(a_pod()), node=a_node("a")))["status"]
    said = await bed.ask("prioritize", task=a_task(a_pod()), nodes=[a_node("a")])
    assert said["nodeScore"] is None
    assert "still reading" in said["errorMessage"]
    assert "still reading" in (await bed.ask("allocateFunc", task=a_task(a_pod(), node="a")))["errorMessage"]


async def test_a_message_that_is_not_volcanos_is_refused():
    with pytest.raises(InvalidRequest, match="no PrioritizeRequest of Volcano"):
        await Bed().ask("prioritize", Pod={}, NodeNames=[])


async def test_what_we_have_no_opinion_about_is_answered_all_the_same():
    bed = Bed()
    assert await bed.ask("onSessionOpen", Jobs={}, Nodes={}) == {}
    assert await bed.ask("jobReady", job={}) == {"status": True}
    assert await bed.ask("queueOverused", queue={}) == {"overused": False}
