"""The verbs: who is told what becomes of a pod, and what is said while nothing is known yet."""

import json
from typing import Any

import pytest

from tessera.errors import BindRefused, InvalidRequest, NotReady
from tessera.model.extender import BindingArgs
from tessera.model.refusals import Reason
from tessera.model.requests import PodRef
from tessera.scheduler.extender import Extender
from tessera.scheduler.phases import Phases
from tessera.scheduler.reasons import Summary
from tests.unit.scheduler.cluster import a_pod, a_world

pytestmark = pytest.mark.asyncio
BINDING = {"PodName": "web", "PodNamespace": "default", "PodUID": "uid-web", "Node": "a"}
WEB = PodRef("default", "web", "uid-web")


class Bed:
    """An extender whose binder does as it is told, and who hears what becomes of pods."""

    def __init__(self, **cards: str) -> None:
        self.is_ready = True
        self.problem: BindRefused | None = None
        self.heard: list[tuple[Any, ...]] = []
        phases = Phases(a_world(**cards))
        self.extender = Extender(phases, self, is_ready=lambda: self.is_ready, witness=self)  # type: ignore[arg-type]

    async def bind(self, _: BindingArgs) -> None:
        if self.problem:
            raise self.problem

    def refused(self, ref: PodRef, summary: Summary) -> None:
        self.heard.append((ref, summary.reason, summary.nodes, summary.asked))

    def bound(self, ref: PodRef, node: str) -> None:
        self.heard.append((ref, node))

    def not_bound(self, ref: PodRef, why: str) -> None:
        self.heard.append((ref, why))

    async def ask(self, verb: str, message: dict[str, Any]) -> Any:
        return json.loads(await self.extender.verbs[verb](json.dumps(message).encode()))


async def test_a_pod_that_no_node_takes_is_told_of_and_one_that_passes_is_not():
    bed = Bed(a="1xA100-SXM4-80GB", b="")
    await bed.ask("/filter", {"Pod": a_pod(memory=4000), "NodeNames": ["a", "b"]})
    assert bed.heard == []
    await bed.ask("/filter", {"Pod": a_pod(memory=90_000), "NodeNames": ["a", "b"]})
    assert bed.heard == [(WEB, Reason.CARD_MEMORY, 1, 2)]


async def test_a_bind_is_told_of_as_it_ends():
    bed = Bed()
    assert await bed.ask("/bind", BINDING) == {"Error": ""}
    bed.problem = BindRefused("the card was taken")
    assert await bed.ask("/bind", BINDING) == {"Error": "the card was taken"}
    assert bed.heard == [(WEB, "a"), (WEB, "the card was taken")]


async def test_nothing_is_answered_from_a_world_that_is_half_read():
    bed = Bed(a="1xA100-SXM4-80GB")
    bed.is_ready = False
    args = {"Pod": a_pod(), "NodeNames": ["a"]}
    assert "still reading" in (await bed.ask("/filter", args))["Error"]
    assert "still reading" in (await bed.ask("/bind", BINDING))["Error"]
    with pytest.raises(NotReady):
        await bed.ask("/prioritize", args)
    assert bed.heard == [], "it is no failure of the pod's"


@pytest.mark.parametrize("verb", ["/filter", "/filter?choose", "/prioritize"])
@pytest.mark.parametrize("items", [[{"metadata": {"name": 7}}], ["x"], [None]])
async def test_nodes_that_are_none_are_the_askers_fault(verb: str, items: list[Any]):
    bed = Bed(a="1xA100-SXM4-80GB")
    try:
        said = (await bed.ask(verb, {"Pod": a_pod(), "Nodes": {"items": items}}))["Error"]
    except InvalidRequest as error:
        said = str(error)
    assert "one of Nodes is no node" in said


async def test_whole_nodes_are_read_in_any_case_and_go_back_as_they_came():
    bed = Bed(a="1xA100-SXM4-80GB", b="1xA100-SXM4-80GB")
    node = {"metadata": {"name": "a", "labels": {"x": "y"}}}
    for items in ("items", "Items"):
        said = await bed.ask("/filter", {"Pod": a_pod(), "Nodes": {items: [node]}})
        assert (said["Nodes"], said["NodeNames"]) == ({"items": [node]}, ["a"])
    said = await bed.ask("/filter", {"Pod": a_pod(), "Nodes": {"items": [node]}, "NodeNames": ["a", "b"]})
    assert said["NodeNames"] == ["a", "b"]
