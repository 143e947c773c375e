"""Binpack: the card and the node that the pod fills most."""

import pytest

from tessera.model.requests import PolicyChoice, ScoringWeights
from tests.builders import a_card, a_node, a_pod, a_ref, a_want, an_allocation
from tests.unit.engine.world import World


def binpack(slot: int = 1, core: int = 1, memory: int = 1) -> PolicyChoice:
    weights = ScoringWeights(slot=slot, core=core, memory=memory)
    return PolicyChoice(node="binpack", cards=("binpack",), weights=weights)


def three_cards() -> World:
    """A has most pods on it, B most cores taken, C most memory."""
    world = World(a_node("n", *(a_card(letter, memory_mib=1000, slots=10) for letter in "ABC")))
    world.hold("n", "A")
    world.hold("n", "A")
    world.hold("n", "B", cores_percent=30)
    world.hold("n", "C", memory_mib=300)
    return world


@pytest.mark.parametrize(
    ("weights", "card"), [(binpack(1, 0, 0), "A"), (binpack(0, 1, 0), "B"), (binpack(0, 0, 1), "C")]
)
def test_the_weights_say_which_figure_makes_a_card_full(weights, card):
    assert three_cards().cards(a_pod(a_want(), policy=weights)) == [[card]]


def test_the_figures_of_a_card_add_up():
    """A: 2/10 + 0 + 0, B: 1/10 + 30/100, C: 1/10 + 300/1000; B and C are equal and B stands left."""
    world = three_cards()
    assert world.cards(a_pod(a_want(), policy=binpack())) == [["B"]]
    world.hold("n", "C", memory_mib=1)
    assert world.cards(a_pod(a_want(), policy=binpack())) == [["C"]]


def test_several_cards_are_the_fullest_ones():
    world = three_cards()
    assert world.cards(a_pod(a_want(2), policy=binpack(0, 1, 2))) == [["B", "C"]]


def test_a_node_scores_what_would_be_used_of_its_slots_cores_and_memory():
    world = World(a_node("n", a_card("A", memory_mib=1000, slots=4), a_card("B", memory_mib=3000, slots=4)))
    world.hold("n", "A", memory_mib=500, cores_percent=10)
    pod = a_want(memory_mib=500, cores_percent=30)
    # slots 2/8, cores 40/200, memory 1000/4000
    assert world.scores(a_pod(pod, policy=binpack()))["n"] == pytest.approx(0.25 + 0.2 + 0.25)
    assert world.scores(a_pod(pod, policy=binpack(2, 3, 5)))["n"] == pytest.approx(0.5 + 0.6 + 1.25)


def test_cards_that_are_not_there_do_not_count():
    world = World(a_node("narrow", a_card("A")), a_node("wide", *(a_card(f"W{number}") for number in range(8))))
    assert world.scores(a_pod(a_want(memory_percent=50), policy=binpack(0, 0, 1))) == pytest.approx(
        {"narrow": 0.5, "wide": 0.0625}
    )

    assert world.scores(a_pod(a_want(cores_percent=50), policy=binpack(0, 1, 0))) == pytest.approx(
        {"narrow": 0.5, "wide": 0.0625}
    )


def test_the_fuller_node_is_taken():
    world = World(a_node("a", a_card("A")), a_node("b", a_card("B")))
    world.hold("b", "B", memory_mib=100)
    assert world.node(a_pod(a_want(), policy=binpack())) == "b"


def test_a_pod_without_cards_goes_where_the_host_is_fullest():
    """CPU 2/4 + memory 1/8 against CPU 1/4 + memory 4/8."""
    world = World(a_node("a", cpu_milli=4000, memory_bytes=8), a_node("b", cpu_milli=4000, memory_bytes=8))
    world.ledger.adopt(a_ref("x"), a_pod(cpu_milli=1000), an_allocation("a"))
    world.ledger.adopt(a_ref("y"), a_pod(memory_bytes=3), an_allocation("b"))
    pod = a_pod(cpu_milli=1000, memory_bytes=1, policy=binpack())
    assert world.scores(pod) == pytest.approx({"a": 0.625, "b": 0.75})
    assert world.node(pod) == "b"
