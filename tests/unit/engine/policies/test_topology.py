"""Topology-aware: fast links for pods of several cards, the worst connected card for a pod of one."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.engine.policies import topology
from tessera.model.devices import Link
from tessera.model.requests import PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_want
from tests.unit.engine.world import World

TOPOLOGY = PolicyChoice(node="topology-aware", cards=("topology-aware",))


def linked(name: str, count: int, scores: dict[tuple[int, int], int]):
    links = [Link(f"{name}{one}", f"{name}{other}", score) for (one, other), score in scores.items()]
    return a_node(name, *(a_card(f"{name}{number}") for number in range(count)), links=links)


def test_one_card_is_the_worst_connected():
    world = World(linked("n", 4, {(0, 1): 9, (2, 3): 1, (1, 2): 1}))
    assert world.cards(a_pod(a_want(), policy=TOPOLOGY)) == [["n3"]]


def test_several_cards_are_the_best_connected_set():
    world = World(linked("n", 4, {(0, 1): 1, (1, 3): 5, (0, 3): 4, (2, 3): 8}))
    assert world.cards(a_pod(a_want(2), policy=TOPOLOGY)) == [["n2", "n3"]]
    assert world.cards(a_pod(a_want(3), policy=TOPOLOGY)) == [["n1", "n2", "n3"]]


def test_a_set_holds_only_cards_that_can_take_the_pod():
    world = World(linked("n", 4, {(2, 3): 8, (0, 1): 1}))
    world.hold("n", "n3", memory_mib=16_384)
    assert world.cards(a_pod(a_want(2, memory_mib=1), policy=TOPOLOGY)) == [["n0", "n1"]]


def test_equal_sets_are_taken_from_the_left():
    world = World(linked("n", 4, {(2, 3): 8, (0, 1): 8}))
    assert world.cards(a_pod(a_want(2), policy=TOPOLOGY)) == [["n0", "n1"]]
    assert World(linked("n", 4, {})).cards(a_pod(a_want(2), policy=TOPOLOGY)) == [["n0", "n1"]]


def test_more_cards_than_any_node_has_are_refused():
    world = World(linked("n", 2, {(0, 1): 8}))
    assert world.fitting(a_pod(a_want(3), policy=TOPOLOGY)) == []


def test_in_a_list_the_set_is_the_same():
    world = World(linked("n", 4, {(2, 3): 8, (0, 1): 1}))
    for order in (("topology-aware", "binpack"), ("topology-aware", "spread"), ("topology-aware", "numa")):
        assert world.cards(a_pod(a_want(2), policy=PolicyChoice(cards=order))) == [["n2", "n3"]]


def test_with_mutex_the_set_is_the_best_of_the_idle_cards():
    world = World(linked("n", 5, {(2, 3): 8, (0, 1): 1, (1, 4): 5}))
    world.hold("n", "n3")
    order = PolicyChoice(cards=("topology-aware", "mutex"))
    assert world.cards(a_pod(a_want(2), policy=order)) == [["n1", "n4"]]


def test_the_node_with_the_best_set_is_taken():
    world = World(linked("a", 2, {(0, 1): 1}), linked("b", 3, {(1, 2): 5}), linked("c", 3, {(0, 1): 3, (1, 2): 3}))
    assert world.node(a_pod(a_want(2), policy=TOPOLOGY)) == "b"
    assert world.node(a_pod(a_want(3), policy=TOPOLOGY)) == "c"


def test_among_equal_sets_the_fuller_node_is_taken_and_no_more_than_that():
    world = World(linked("a", 2, {(0, 1): 5}), linked("b", 2, {(0, 1): 5}), linked("c", 2, {(0, 1): 6}))
    world.hold("b", "b0", memory_mib=8000)
    scores = world.scores(a_pod(a_want(2), policy=TOPOLOGY))
    assert scores["a"] < scores["b"] < scores["c"]
    assert scores["b"] == pytest.approx(5 + (3 / 20 + 8000 / 32_768) / 8, abs=1e-4)


def test_a_pod_of_one_card_goes_to_the_fuller_node():
    world = World(linked("a", 2, {(0, 1): 5}), linked("b", 2, {}))
    world.hold("b", "b0", memory_mib=100)
    assert world.node(a_pod(a_want(), policy=TOPOLOGY)) == "b"


pairs = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: pair[0] < pair[1]), st.integers(1, 100)
)


def total(scores: dict[tuple[int, int], int], chosen: tuple[int, ...]) -> int:
    return sum(scores.get(pair, 0) for pair in combinations(sorted(chosen), 2))


def numbers_of(world: World, count: int) -> tuple[int, ...]:
    (cards,) = world.cards(a_pod(a_want(count, memory_mib=1), policy=TOPOLOGY))
    return tuple(int(uuid[1:]) for uuid in cards)


@given(pairs, st.integers(2, 5), st.sets(st.integers(0, 6), max_size=2))
def test_the_best_of_all_sets_is_found(scores, count, full):
    world = World(linked("n", 7, scores), linked("m", 3, {(0, 1): 1}))
    for number in full:
        world.hold("n", f"n{number}", memory_mib=16_384)
    world.ledger.drop_node("m")
    free = [number for number in range(7) if number not in full]
    best = max(combinations(free, count), key=lambda chosen: total(scores, chosen))
    assert numbers_of(world, count) == best


@given(pairs, st.integers(2, 6))
def test_beyond_the_limit_a_set_grows_card_by_card(scores, count):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topology, "MAX_SETS", 0)
        chosen = numbers_of(World(linked("n", 7, scores)), count)
    grown = [max(range(7), key=lambda card: total_of_one(scores, card, range(7)))]
    while len(grown) < count:
        rest = [card for card in range(7) if card not in grown]
        grown.append(max(rest, key=lambda card: total_of_one(scores, card, grown)))
    assert chosen == tuple(sorted(grown))


def total_of_one(scores: dict[tuple[int, int], int], card: int, others) -> int:
    return sum(scores.get((min(card, other), max(card, other)), 0) for other in others if other != card)


def test_sixteen_cards_are_too_many_to_try_all_sets_of_eight():
    island = dict.fromkeys(combinations(range(4, 12), 2), 10)
    assert numbers_of(World(linked("n", 16, island)), 8) == tuple(range(4, 12))
