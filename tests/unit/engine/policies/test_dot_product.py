"""Dot-product: where request and what is free point least the same way."""

from math import floor

from tessera.model.requests import PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_want
from tests.unit.engine.world import World

DOT_PRODUCT = PolicyChoice(node="dot-product", cards=("dot-product",))


def test_a_node_scores_a_hundred_less_the_mean_of_the_two_products():
    world = World(a_node("a", a_card("A"), a_card("B"), cpu_milli=4000), a_node("b", a_card("C"), cpu_milli=2000))
    scores = world.scores(a_pod(a_want(memory_percent=50), cpu_milli=1000, policy=DOT_PRODUCT))
    both = 100 * (1 - (4 / 4 * 1 / 4 + 2 / 2 * 0.5 / 2) / 2)
    one = 100 * (1 - (2 / 4 * 1 / 4 + 1 / 2 * 0.5 / 2) / 2)
    assert scores == {"a": floor(both), "b": floor(one)}


def test_the_card_with_the_least_left_is_taken():
    world = World(a_node("n", a_card("A"), a_card("B")))
    world.hold("n", "B", memory_mib=100)
    assert world.cards(a_pod(a_want(), policy=DOT_PRODUCT)) == [["B"]]
