"""Spread: the card and the node that stay emptiest."""

import pytest

from tessera.model.requests import PolicyChoice, ScoringWeights
from tests.builders import a_card, a_node, a_pod, a_want
from tests.unit.engine.world import World


def spread(slot: int = 1, core: int = 1, memory: int = 1) -> PolicyChoice:
    weights = ScoringWeights(slot=slot, core=core, memory=memory)
    return PolicyChoice(node="spread", cards=("spread",), weights=weights)


@pytest.mark.parametrize(("weights", "card"), [(spread(1, 0, 0), "B"), (spread(0, 1, 0), "A"), (spread(0, 0, 1), "B")])
def test_the_weights_say_which_figure_makes_a_card_empty(weights, card):
    world = World(a_node("n", a_card("A", memory_mib=1000), a_card("B", memory_mib=1000)))
    world.hold("n", "A", memory_mib=10)
    world.hold("n", "A", memory_mib=10)
    world.hold("n", "B", memory_mib=15, cores_percent=20)
    assert world.cards(a_pod(a_want(), policy=weights)) == [[card]]


def test_several_cards_are_the_emptiest_ones():
    world = World(a_node("n", *(a_card(letter) for letter in "ABC")))
    world.hold("n", "A", memory_mib=10)
    assert world.cards(a_pod(a_want(2), policy=spread())) == [["B", "C"]]


def test_a_node_scores_the_negative_of_what_would_be_used():
    world = World(a_node("n", a_card("A", memory_mib=1000, slots=4)))
    world.hold("n", "A", memory_mib=250, cores_percent=10)
    pod = a_pod(a_want(memory_mib=250, cores_percent=30), policy=spread(2, 3, 5))
    assert world.scores(pod)["n"] == pytest.approx(-(2 * 0.5 + 3 * 0.4 + 5 * 0.5))


def test_the_emptier_node_is_taken():
    world = World(a_node("a", a_card("A")), a_node("b", a_card("B")))
    world.hold("a", "A", memory_mib=100)
    assert world.node(a_pod(a_want(), policy=spread())) == "b"
