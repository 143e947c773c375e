"""Best-fit: the least CPU and GPU left idle."""

import pytest

from tessera.model.requests import PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_want
from tests.unit.engine.world import World

BEST_FIT = PolicyChoice(node="best-fit", cards=("best-fit",))


def test_the_card_with_the_least_memory_left_in_proportion_is_taken():
    world = World(a_node("n", a_card("A", memory_mib=1000), a_card("B", memory_mib=4000)))
    world.hold("n", "A", memory_mib=500)
    world.hold("n", "B", memory_mib=2100)
    assert world.cards(a_pod(a_want(memory_mib=1), policy=BEST_FIT)) == [["B"]]


def test_a_node_scores_what_is_left_of_cpu_and_cards_relative_to_the_largest():
    world = World(a_node("a", a_card("A"), a_card("B"), cpu_milli=4000), a_node("b", a_card("C"), cpu_milli=2000))
    scores = world.scores(a_pod(a_want(memory_percent=50), cpu_milli=1000, policy=BEST_FIT))
    assert scores == pytest.approx({"a": -(3 / 4 + 1.5 / 2) / 2, "b": -(1 / 4 + 0.5 / 2) / 2})
