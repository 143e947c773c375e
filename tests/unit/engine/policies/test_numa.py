"""Numa: cards that sit together, if there are enough of them."""

from tessera.model.requests import PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_want
from tests.unit.engine.world import World

NUMA = PolicyChoice(cards=("numa",))


def a_board(*numas: int) -> World:
    return World(a_node("n", *(a_card(f"{numa}-{position}", numa=numa) for position, numa in enumerate(numas))))


def test_cards_come_from_one_numa_node():
    assert a_board(0, 1, 0, 1).cards(a_pod(a_want(2), policy=NUMA)) == [["0-0", "0-2"]]


def test_the_numa_node_with_the_fewest_cards_that_suffice_is_taken():
    world = a_board(0, 0, 0, 1, 1)
    assert world.cards(a_pod(a_want(1), policy=NUMA)) == [["1-3"]]
    assert world.cards(a_pod(a_want(2), policy=NUMA)) == [["1-3", "1-4"]]
    assert world.cards(a_pod(a_want(3), policy=NUMA)) == [["0-0", "0-1", "0-2"]]


def test_where_none_suffices_the_largest_gives_first():
    assert a_board(0, 1, 1, 2).cards(a_pod(a_want(3), policy=NUMA)) == [["0-0", "1-1", "1-2"]]


def test_only_cards_that_can_take_the_pod_count():
    world = a_board(0, 0, 1, 1, 1)
    world.hold("n", "0-0", memory_mib=16_384)
    assert world.cards(a_pod(a_want(2, memory_mib=1), policy=NUMA)) == [["1-2", "1-3"]]


def test_with_mutex_only_idle_cards_count():
    world = a_board(0, 0, 1, 1, 1)
    world.hold("n", "0-0")
    both = PolicyChoice(cards=("numa", "mutex"))
    assert world.cards(a_pod(a_want(2), policy=both)) == [["1-2", "1-3"]]


def test_among_cards_of_one_numa_node_the_next_policy_decides():
    world = a_board(0, 1, 1, 1)
    world.hold("n", "1-3", memory_mib=10)
    world.hold("n", "0-0", memory_mib=16_384)
    assert world.cards(a_pod(a_want(memory_mib=1), policy=PolicyChoice(cards=("numa", "binpack")))) == [["1-3"]]
