"""How useful the idle part of a node is, against the formulas of docs/policies.md worked out the slow way."""

from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.engine.demand import Demand
from tessera.engine.landscape import STATES, Appraisal, Landscape, ShapeTable, card_states, share_per_kind
from tessera.engine.mix import Shape
from tessera.engine.trial import Cards
from tests.builders import a_card, a_node, a_want
from tests.unit.engine.world import World

APPRAISAL = Appraisal(useful=0.4, lost=0.6, unusable=0.1)
NO_GROUPS = np.zeros((0, 0), np.float32)


def a_shape(percent: int, count: int = 1, cpu: int = 1000, memory: int = 1000) -> Shape:
    """So much of a card of 1000 MiB."""
    return Shape(a_want(count, memory_mib=10 * percent), cpu, memory)


def a_landscape(world: World, shapes: list[tuple[Shape, float]], *, groups: int = 0) -> Landscape:
    catalogue = ShapeTable(world.ledger.fleet, *zip(*shapes, strict=True), by_card=True)
    return Landscape(world.ledger.fleet, catalogue, np.eye(len(shapes), groups, dtype=np.float32), APPRAISAL)


def worth_of(free: list[int], cpu: int, memory: int, shapes: list[tuple[Shape, float]]) -> float:
    """0.4 times the use less 0.6 times the loss less a tenth of what is idle, in milli-GPU."""
    asked = [
        (shape.device.memory_mib // 10, shape.device.count, shape, often) for shape, often in shapes if shape.device
    ]
    weights = [often * 100 / share for share, _, _, often in asked]
    idle, useful, lost = 10 * sum(free), 0.0, 0.0
    for (share, count, shape, _), weight in zip(asked, weights, strict=True):
        weight /= sum(weights)
        copies = sum(percent // share for percent in free) // count
        fits = copies >= 1 and cpu >= shape.cpu_milli and memory >= shape.memory_bytes
        if fits:
            by_cpu = min(1.0, cpu / (copies * shape.cpu_milli))
            by_memory = min(1.0, memory / (copies * shape.memory_bytes))
            useful += weight * copies * count * share * 10 * by_cpu * by_memory
        lost += weight * (10 * sum(percent for percent in free if percent < share) if fits else idle)
    return 0.4 * useful - 0.6 * lost - 0.1 * idle


shapes_wanted = st.lists(
    st.tuples(
        st.builds(
            a_shape, st.integers(1, 100), st.sampled_from([1, 1, 1, 2, 4]), st.integers(1, 9000), st.integers(1, 9000)
        ),
        st.floats(0.01, 1),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda item: item[0],
)
taken = st.lists(st.integers(0, 100), min_size=1, max_size=6)


@given(shapes_wanted, taken, st.integers(0, 20_000), st.integers(0, 20_000))
def test_a_node_is_worth_its_use_less_its_loss(shapes, held, cpu, memory):
    cards = [a_card(f"G{number}", memory_mib=1000) for number in range(len(held))]
    world = World(a_node("wide", *(a_card(f"X{number}", memory_mib=1000) for number in range(8))))
    world.ledger.put_node(a_node("n", *cards, cpu_milli=cpu, memory_bytes=memory))
    for number, percent in enumerate(held):
        world.hold("n", f"G{number}", memory_mib=10 * percent)
    landscape = a_landscape(world, shapes)
    expected = worth_of([100 - percent for percent in held], cpu, memory, shapes)
    assert landscape.value[1] == pytest.approx(expected, rel=1e-4, abs=0.05)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 90)), max_size=6))
def test_a_landscape_that_follows_changes_equals_a_new_one(changes):
    shapes = [(a_shape(30), 0.5), (a_shape(100, 2), 0.5)]
    nodes = [a_node(name, *(a_card(f"{name}{number}", memory_mib=1000) for number in range(2))) for name in "ab"]
    world = World(*nodes)
    followed = a_landscape(world, shapes, groups=2)
    for name, card, percent in changes:
        world.hold(name, f"{name}{card}", memory_mib=10 * percent)
        followed.refresh()
    world.ledger.drop_node("a")
    followed.refresh()
    fresh = a_landscape(world, shapes, groups=2)
    assert np.array_equal(followed.states, fresh.states)
    assert np.array_equal(followed.sums, fresh.sums)
    assert np.array_equal(followed.value, fresh.value)
    assert followed.places_left == pytest.approx(fresh.places_left)


def test_copies_count_whole_pods_that_cards_cpu_and_memory_can_hold():
    world = World(a_node("n", *(a_card(f"G{number}", memory_mib=1000) for number in range(4)), cpu_milli=5000))
    world.hold("n", "G0", memory_mib=500)
    shapes = [
        (a_shape(30), 0.1),
        (a_shape(100, 2), 0.1),
        (a_shape(30, cpu=2400), 0.1),
        (a_shape(30, memory=2**40), 0.1),
    ]
    assert a_landscape(world, shapes, groups=4).places_left.tolist() == [5, 1, 2, 0]


def test_trying_a_placement_swaps_the_cards_that_change():
    world = World(a_node("n", a_card("A", memory_mib=1000), a_card("B", memory_mib=1000)))
    landscape = a_landscape(world, [(a_shape(30), 1.0)])
    after = card_states(Cards(world.ledger.fleet, np.array([0])))
    after[0] -= [40, 70]
    tried = landscape.after(np.array([0]), after)
    world.hold("n", "A", memory_mib=400)
    world.hold("n", "B", memory_mib=700)
    landscape.refresh()
    assert tried == pytest.approx(landscape.sums[:1])


def test_a_share_that_rounds_up_into_a_gap_that_rounds_down_fills_it():
    """And never reaches into the states of another kind."""
    world = World(a_node("n", a_card("A", memory_mib=2000, model="other"), a_card("B", memory_mib=1000)))
    landscape = a_landscape(world, [(a_shape(30), 0.5), (a_shape(11), 0.5)])
    gap = 2 * STATES + 10
    rounded, exact = (
        landscape.card_preference(np.array([0, share, share], np.int32), 8000.0)[gap] for share in (11, 10)
    )
    assert rounded == exact


class TestShares:
    def shares(self, *cards, **figures) -> list[int]:
        fleet = World(a_node("n", *cards)).ledger.fleet
        return share_per_kind(Demand(a_want(**figures), fleet.kinds), fleet).tolist()[1:]

    def test_the_scarcer_figure_counts_and_is_rounded_up(self):
        card = a_card("A", memory_mib=1000)
        assert self.shares(card, memory_mib=251, cores_percent=10) == [26]
        assert self.shares(card, memory_mib=100, cores_percent=30) == [30]
        assert self.shares(card, memory_percent=50) == [50]

    def test_cores_are_measured_against_what_the_card_has(self):
        assert self.shares(a_card("A", cores_percent=200), cores_percent=50) == [25]

    def test_who_asks_for_neither_takes_a_slot(self):
        assert self.shares(a_card("A", slots=10)) == [10]
        assert self.shares(a_card("A", slots=3)) == [34]

    def test_a_card_that_will_not_do_has_no_share(self):
        assert self.shares(a_card("A", memory_mib=1000), memory_mib=1001) == [0]
        assert self.shares(a_card("A", vendor="DCU")) == [0]


class TestStates:
    def states(self, world: World) -> list[int]:
        return (card_states(Cards(world.ledger.fleet, np.array([0])))[0] % STATES).tolist()

    def test_the_scarcer_figure_counts_and_is_rounded_down(self):
        world = World(a_node("n", a_card("A", memory_mib=1000), a_card("B", memory_mib=1000)))
        world.hold("n", "A", memory_mib=251, cores_percent=10)
        world.hold("n", "B", memory_mib=100, cores_percent=30)
        assert self.states(world) == [74, 70]

    def test_a_card_that_takes_nobody_has_nothing_to_give(self):
        world = World(a_node("n", a_card("A", slots=1), a_card("B", healthy=False), a_card("C"), cordoned=["C"]))
        world.hold("n", "A")
        assert self.states(world) == [0, 0, 0]

    def test_an_overcommitted_card_has_nothing_to_give(self):
        world = World(a_node("n", a_card("A", memory_mib=1000)))
        world.hold("n", "A", memory_mib=3000)
        assert self.states(world) == [0]


def test_a_large_card_does_not_overflow():
    world = World(a_node("n", a_card("A", memory_mib=2**24)))
    states = card_states(Cards(world.ledger.fleet, np.array([0])))
    assert states[0, 0] % STATES == 100


def test_weights_count_by_how_many_a_card_holds():
    world = World(a_node("n", a_card("A", memory_mib=1000)))
    catalogue = ShapeTable(world.ledger.fleet, [a_shape(25), a_shape(50)], [0.5, 0.5], by_card=True)
    assert catalogue.weight == pytest.approx([2 / 3, 1 / 3])


def test_the_usual_share_is_that_on_the_commonest_kind_and_not_on_the_first():
    small, large = {"memory_mib": 1000, "model": "s"}, {"memory_mib": 2000, "model": "l"}
    world = World(a_node("n", a_card("A", **large), a_card("B", **small), a_card("C", **small)))
    assert ShapeTable(world.ledger.fleet, [a_shape(50)], [1.0], by_card=True).usual_share.tolist() == [50]


def test_the_usual_share_does_not_depend_on_who_came_first():
    small, large = a_card("A", memory_mib=1000, model="s"), a_card("B", memory_mib=2000, model="l")
    shares = {
        floor(ShapeTable(World(a_node("n", *cards)).ledger.fleet, [a_shape(50)], [1.0], by_card=True).usual_share[0])
        for cards in ((small, large), (large, small))
    }
    assert len(shares) == 1
