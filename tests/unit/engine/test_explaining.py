"""Every refusal says what is in the way, and by how much."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from tessera.engine import quota
from tessera.model.devices import Taint
from tessera.model.refusals import Reason, Refusal, render
from tessera.model.requests import CardSelector, ClaimPolicy, LabelRule, PodRequest, PolicyChoice, TopologyMode
from tests.builders import GIB, a_card, a_node, a_pod, a_ref, a_want, an_allocation
from tests.unit.engine.claims import a_claim_pod, a_wired_node
from tests.unit.engine.world import World

DOCUMENT = Path(__file__).parents[3] / "docs/reasons.md"
MUTEX = PolicyChoice(cards=("mutex",))


class Case(NamedTuple):
    """A state and a pod that it refuses."""

    world: Callable[[], World]
    pod: PodRequest
    refusal: Refusal
    sentence: str


def cards(*letters: str, **changes: object) -> Callable[[], World]:
    return lambda: World(a_node("gpu-07", *(a_card(letter, **changes) for letter in letters)))


def holding(*held: tuple[str, int, int], letters: str = "AB", **changes: object) -> Callable[[], World]:
    """The cards of the node, of which somebody holds so much memory and cores."""

    def build() -> World:
        world = cards(*letters, **changes)()
        for uuid, memory, cores in held:
            world.hold("gpu-07", uuid, memory, cores)
        return world

    return build


def hosted(**host: object) -> Callable[[], World]:
    return lambda: World(a_node("gpu-07", a_card("A"), **host))


def crowded() -> World:
    world = World(a_node("gpu-07", a_card("A"), pods=1))
    world.hold("gpu-07", "A")
    return world


def half_sick() -> World:
    return World(a_node("gpu-07", a_card("A"), a_card("B", healthy=False)))


def half_cordoned() -> World:
    return World(a_node("gpu-07", a_card("A"), a_card("B"), cordoned=["B"]))


def two_numa_nodes() -> World:
    return World(a_node("gpu-07", *(a_card(f"{numa}{letter}", numa=numa) for letter in "ab" for numa in (0, 1))))


def two_sizes() -> World:
    """Half of A is nearer than half of B, although B has more free."""
    world = World(a_node("gpu-07", a_card("B", memory_mib=80_000), a_card("A", memory_mib=24_000)))
    world.hold("gpu-07", "A", 14_000)
    world.hold("gpu-07", "B", 60_000)
    return world


def wired(islands: str, *, held: Sequence[int] = (), **changes: Any) -> Callable[[], World]:
    """Cards 0, 1, … of these islands, some of them in use."""

    def build() -> World:
        world = World(a_wired_node("gpu-07", islands, **changes))
        for one in held:
            world.hold("gpu-07", str(one))
        return world

    return build


def said(reason: Reason, need: int = 0, have: int = 0, detail: str = "", cards: int = 1) -> Refusal:
    return Refusal(reason, need, have, "gpu-07", detail, cards)


CASES = [
    Case(
        hosted(ready=False),
        a_pod(a_want()),
        said(Reason.NODE_NOT_READY),
        "gpu-07: the node is not ready",
    ),
    Case(
        hosted(unschedulable=True),
        a_pod(a_want()),
        said(Reason.NODE_CORDONED),
        "gpu-07: the node is cordoned",
    ),
    Case(
        hosted(labels=(("gpu", "off"),)),
        a_pod(a_want(), node_terms=((LabelRule("gpu", "In", ("on",)),),)),
        said(Reason.NODE_SELECTOR),
        "gpu-07: the node's labels do not match the node selector of the pod or its claim",
    ),
    Case(
        hosted(taints=(Taint("dedicated", "ml"),)),
        a_pod(a_want()),
        said(Reason.NODE_TAINT, detail="dedicated=ml:NoSchedule"),
        "gpu-07: the pod does not tolerate the taint dedicated=ml:NoSchedule",
    ),
    Case(
        hosted(cpu_milli=3000),
        a_pod(a_want(), cpu_milli=4000),
        said(Reason.HOST_CPU, 4000, 3000),
        "gpu-07: 4000m CPU wanted, 3000m free",
    ),
    Case(
        hosted(memory_bytes=GIB),
        a_pod(a_want(), memory_bytes=GIB + 1),
        said(Reason.HOST_MEMORY, GIB + 1, GIB),
        "gpu-07: 1073741825 bytes of memory wanted, 1073741824 free",
    ),
    Case(
        crowded,
        a_pod(a_want()),
        said(Reason.HOST_PODS, 1, 0),
        "gpu-07: the node runs all the pods it may, 0 of 1 places are free",
    ),
    Case(
        cards(),
        a_pod(a_want()),
        said(Reason.NO_CARDS, 1, 0, "NVIDIA"),
        "gpu-07: the node has no NVIDIA cards",
    ),
    Case(
        cards("A", vendor="DCU"),
        a_pod(a_want(2)),
        said(Reason.NO_CARDS, 2, 0, "NVIDIA", 2),
        "gpu-07: the node has no NVIDIA cards",
    ),
    Case(
        cards("A", "B"),
        a_pod(a_want(3)),
        said(Reason.TOO_FEW_CARDS, 3, 2, cards=3),
        "gpu-07: 3 cards wanted, the node has 2",
    ),
    Case(
        half_sick,
        a_pod(a_want(2)),
        said(Reason.CARD_UNHEALTHY, 2, 1, cards=2),
        "gpu-07: 2 cards wanted, 1 healthy",
    ),
    Case(
        half_cordoned,
        a_pod(a_want(2)),
        said(Reason.CARD_CORDONED, 2, 1, cards=2),
        "gpu-07: 2 cards wanted, 1 not cordoned",
    ),
    Case(
        cards("A", model="NVIDIA A100"),
        a_pod(a_want(selector=CardSelector(use_types=("H100",)))),
        said(Reason.CARD_TYPE, 1, 0),
        "gpu-07: 1 card wanted, 0 of an accepted type",
    ),
    Case(
        cards("A", "B"),
        a_pod(a_want(2, selector=CardSelector(avoid_uuids=("B",)))),
        said(Reason.CARD_UUID, 2, 1, cards=2),
        "gpu-07: 2 cards wanted, 1 among the accepted UUIDs",
    ),
    Case(
        cards("A"),
        a_pod(a_want(selector=CardSelector(mode="mps"))),
        said(Reason.CARD_MODE, 1, 0),
        "gpu-07: 1 card wanted, 0 in a mode that will do",
    ),
    Case(
        holding(("A", 0, 0), slots=1),
        a_pod(a_want(2)),
        said(Reason.CARD_SLOTS, 2, 1, cards=2),
        "gpu-07: 2 cards with a free slot wanted, the node has 1",
    ),
    Case(
        holding(("A", 384, 0), ("B", 1000, 0)),
        a_pod(a_want(memory_mib=24_000)),
        said(Reason.CARD_MEMORY, 24_000, 16_000),
        "gpu-07: no card has 24000 MiB free, the roomiest has 16000 MiB",
    ),
    Case(
        holding(("A", 384, 0), ("B", 1000, 0), letters="ABC"),
        a_pod(a_want(3, memory_mib=16_000)),
        said(Reason.CARD_MEMORY, 16_000, 15_384, cards=3),
        "gpu-07: fewer than 3 cards have 16000 MiB free, the 3 roomiest have 15384 MiB each",
    ),
    Case(
        two_sizes,
        a_pod(a_want(memory_percent=50)),
        said(Reason.CARD_MEMORY, 12_000, 10_000),
        "gpu-07: no card has 12000 MiB free, the roomiest has 10000 MiB",
    ),
    Case(
        holding(("A", 0, 70), ("B", 0, 80)),
        a_pod(a_want(cores_percent=40)),
        said(Reason.CARD_CORES, 40, 30),
        "gpu-07: no card has 40 % of its cores free, the idlest has 30 %",
    ),
    Case(
        holding(("A", 0, 100), ("B", 0, 100)),
        a_pod(a_want()),
        said(Reason.CARD_CORES, 1, 0),
        "gpu-07: no card has 1 % of its cores free, the idlest has 0 %",
    ),
    Case(
        holding(("A", 0, 70), ("B", 0, 20)),
        a_pod(a_want(2, cores_percent=40)),
        said(Reason.CARD_CORES, 40, 30, cards=2),
        "gpu-07: fewer than 2 cards have 40 % of their cores free, the 2 idlest 30 % each",
    ),
    Case(
        holding(("A", 0, 0)),
        a_pod(a_want(2, cores_percent=100)),
        said(Reason.CARD_EXCLUSIVE, 2, 1, cards=2),
        "gpu-07: 2 cards that nobody uses wanted, 1 idle",
    ),
    Case(
        holding(("A", 0, 0), ("B", 0, 0)),
        a_pod(a_want(), policy=MUTEX),
        said(Reason.CARD_EXCLUSIVE, 1, 0),
        "gpu-07: 1 card that nobody uses wanted, 0 idle",
    ),
    Case(
        two_numa_nodes,
        a_pod(a_want(3, selector=CardSelector(same_numa=True))),
        said(Reason.CARD_NUMA, 3, 2, cards=3),
        "gpu-07: 3 cards on one NUMA node wanted, at most 2 together",
    ),
    Case(
        wired("AABB", held=[1]),
        a_claim_pod(4),
        said(Reason.CARD_EXCLUSIVE, 4, 3, cards=4),
        "gpu-07: 4 cards that nobody uses wanted, 3 idle",
    ),
    Case(
        wired("AABB", held=[0]),
        a_claim_pod(2, pinned_ids=(0, 2)),
        said(Reason.CARD_PINNED, 2, 1, "0 (in use)"),
        "gpu-07: the pod is pinned to cards of which some cannot be had: 0 (in use)",
    ),
    Case(
        wired("AABB", sick=[1], cordoned=[2]),
        a_claim_pod(4, pinned_ids=(1, 2, 3, 12), selector=CardSelector(avoid_uuids=("3",))),
        said(Reason.CARD_PINNED, 4, 0, "1 (unhealthy), 2 (cordoned), 3 (not accepted by the pod), 12 (not there)"),
        "gpu-07: the pod is pinned to cards of which some cannot be had: "
        "1 (unhealthy), 2 (cordoned), 3 (not accepted by the pod), 12 (not there)",
    ),
    Case(
        wired("AABB"),
        a_claim_pod(3, topology=TopologyMode.REQUIRED),
        said(Reason.CARDS_ISLAND, 3, 2, cards=3),
        "gpu-07: 3 cards in one island wanted, at most 2 together",
    ),
    Case(
        wired("    "),
        a_claim_pod(2, topology=TopologyMode.REQUIRED),
        said(Reason.CARDS_ISLAND, 2, 0, cards=2),
        "gpu-07: 2 cards in one island wanted, at most 0 together",
    ),
    Case(
        wired("AAABBB", bandwidths=[600, 300, 200, 400, 100, 100]),
        a_claim_pod(2, topology=TopologyMode.REQUIRED, min_bandwidth_gbps=500),
        said(Reason.CARDS_BANDWIDTH, 2, 300, "500", 2),
        "gpu-07: 2 cards joined at 500 GB/s wanted, the best set has 300 GB/s",
    ),
    Case(
        wired("AB"),
        a_claim_pod(2, topology=TopologyMode.REQUIRED, min_bandwidth_gbps=1),
        said(Reason.CARDS_BANDWIDTH, 2, 0, "1", 2),
        "gpu-07: 2 cards joined at 1 GB/s wanted, the best set has 0 GB/s",
    ),
    Case(
        wired("AAAAAA", held=[3]),
        a_claim_pod(4, policy=ClaimPolicy.CONTIGUOUS),
        said(Reason.CARDS_ADJACENT, 4, 3, cards=4),
        "gpu-07: 4 cards with adjacent ids wanted, at most 3 in a row",
    ),
    Case(
        wired("ABBAAB"),
        a_claim_pod(3, policy=ClaimPolicy.CONTIGUOUS, topology=TopologyMode.REQUIRED),
        said(Reason.CARDS_ADJACENT, 3, 2, cards=3),
        "gpu-07: 3 cards with adjacent ids wanted, at most 2 in a row",
    ),
    Case(
        cards("A", memory_mib=1000),
        a_pod(a_want(memory_mib=600), a_want(memory_mib=500)),
        said(Reason.CARDS_TOGETHER),
        "gpu-07: each container finds cards alone, but not all of them together",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence.removeprefix("gpu-07: "))
def test_a_state_gives_its_reason_with_its_numbers_and_its_sentence(case):
    world = case.world()
    assert world.fitting(case.pod) == []
    assert world.refusal(case.pod) == case.refusal
    assert world.sentences(case.pod) == [case.sentence]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence.removeprefix("gpu-07: "))
def test_asking_again_gives_the_same_words(case):
    world = case.world()
    first = world.sentences(case.pod)
    world.ledger.put_node(a_node("other", a_card("X")))
    world.ledger.drop_node("other")
    assert world.sentences(case.pod) == first


def test_a_quota_is_refused_with_the_namespace_and_the_figure():
    world = World(a_node("gpu-07", a_card("A")))
    limits = {"NVIDIA": quota.Limits(memory_mib=1000)}
    refusal = quota.check_request(world.ledger, "team-a", a_pod(a_want(memory_mib=1500)), limits)
    assert refusal == Refusal(Reason.QUOTA, 1500, 1000, "team-a", "NVIDIA memory_mib")
    assert refusal is not None
    assert render(refusal) == "team-a: NVIDIA memory_mib would be 1500, the quota allows 1000"


NOT_OF_THE_ENGINE = {
    Reason.NODE_UNKNOWN,
    Reason.CLAIM_MISSING,
    Reason.CLAIM_INVALID,
    Reason.CLAIM_IN_USE,
    Reason.GANG_UNKNOWN,
    Reason.GANG_INCOMPLETE,
    Reason.GANG_UNPLACED,
    Reason.GANG_SCATTERED,
}
"""The engine speaks of the nodes it has and of what is asked of it; the rest is for its caller to say."""


def test_every_reason_is_shown_by_a_state():
    shown = {case.refusal.reason for case in CASES} | {Reason.QUOTA} | NOT_OF_THE_ENGINE
    assert shown == set(Reason)


def test_every_sentence_can_be_made_without_a_place():
    for reason in Reason:
        for count in (1, 2):
            sentence = render(Refusal(reason, 3, 2, detail="x", cards=count))
            assert sentence
            assert "{" not in sentence
            assert not sentence.startswith(":")
            assert render(Refusal(reason, 3, 2, "gpu-07", "x", count)) == f"gpu-07: {sentence}"


class TestOrder:
    """The first thing in the way is told, from the host to the card."""

    def test_the_host_comes_before_the_cards(self):
        world = World(a_node("n", ready=False, cpu_milli=0))
        assert world.refusal(a_pod(a_want(9), cpu_milli=1)).reason is Reason.NODE_NOT_READY

    def test_what_cannot_be_changed_comes_before_what_others_hold(self):
        world = World(a_node("n", a_card("A", healthy=False, model="T4")))
        wanted = a_want(memory_mib=10**6, selector=CardSelector(use_types=("A100",)))
        assert world.refusal(a_pod(wanted)).reason is Reason.CARD_TYPE

    def test_containers_that_are_refused_alike_are_told_in_their_order(self):
        """Sets have another order in every process, sentences must not."""
        for first in range(2, 30):
            pod = a_pod(a_want(memory_mib=first * 100_000), a_want(memory_mib=100_000))
            assert World(a_node("n", a_card("A"))).refusal(pod).need == first * 100_000

    def test_the_vendor_decides_first_and_then_who_wants_more_cards(self):
        world = World(a_node("n", a_card("A")))
        pod = a_pod(a_want(2), a_want(5), a_want(9, vendor="DCU"))
        assert world.refusal(pod).detail == "DCU"
        assert world.refusal(a_pod(a_want(2), a_want(5))).need == 5

    def test_nodes_are_told_by_name(self):
        world = World(*(a_node(name) for name in ("n2", "n1", "n10")))
        assert [refusal.where for refusal in world.decider.refusals(a_pod(a_want()))] == ["n1", "n10", "n2"]

    def test_a_node_that_fits_is_not_among_them(self):
        world = World(a_node("n1"), a_node("n2", a_card("A")))
        assert [refusal.where for refusal in world.decider.refusals(a_pod(a_want()))] == ["n1"]
        assert World().decider.refusals(a_pod(a_want(2))) == []

    def test_an_overcommitted_card_has_nothing_rather_than_less(self):
        world = World(a_node("n", a_card("A", memory_mib=1000)))
        world.hold("n", "A", 1500)
        assert world.refusal(a_pod(a_want(memory_mib=1))).have == 0

    def test_an_overcommitted_host_has_nothing_rather_than_less(self):
        world = World(a_node("n", a_card("A"), cpu_milli=1000, memory_bytes=1000))
        world.ledger.adopt(a_ref("greedy"), a_pod(cpu_milli=5000), an_allocation("n"))
        assert world.refusal(a_pod(cpu_milli=1)).have == 0


class TestDocument:
    SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)

    def sections(self) -> dict[str, str]:
        return dict(self.SECTION.findall(DOCUMENT.read_text(encoding="utf-8")))

    def test_every_reason_has_its_section_in_the_order_of_the_code(self):
        assert list(self.sections()) == [reason.value for reason in Reason]

    @pytest.mark.parametrize("reason", Reason)
    def test_the_section_quotes_the_sentence_as_it_is_made(self, reason):
        text = self.sections()[reason.value]
        assert "**What to do.**" in text
        for count in (1, 2):
            assert f"`{template_of(reason, count)}`" in text


def template_of(reason: Reason, count: int) -> str:
    """The sentence of a refusal whose figures are their own names."""
    need, have = cast(Any, "{need}"), cast(Any, "{have}")
    return render(Refusal(reason, need, have, detail="{detail}", cards=count)).replace("2", "{cards}")
