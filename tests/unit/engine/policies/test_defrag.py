"""Defrag: every pod where it hurts the pods to come the least."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessera.engine import policies
from tessera.engine.mix import HALF_LIFE_PODS, Mix, shape_of
from tessera.engine.policies.defrag import (
    APPRAISAL,
    GAP_WEIGHT,
    MAX_PREFERENCES,
    ORDER_WEIGHT,
    REVIEW_EVERY,
    TIE_WIDTH,
    Defrag,
    order_in_class,
)
from tessera.engine.reserves import NEGLIGIBLE, SIGMAS, is_special
from tessera.model.devices import Device, Node
from tessera.model.requests import CardSelector, PodRequest, PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_ref, a_want, an_allocation
from tests.unit.engine.world import World

DEFRAG = PolicyChoice(node="defrag", cards=("defrag",))


def percent(share: int, **changes: Any) -> PodRequest:
    return a_pod(a_want(1, memory_percent=share, cores_percent=share, **changes), cpu_milli=1000)


def cards(count: int, **changes: Any) -> PodRequest:
    return a_pod(a_want(count, memory_percent=100, cores_percent=100, **changes), cpu_milli=1000)


def a_world(*nodes: Node, seen: Iterable[PodRequest] = ()) -> World:
    world = World(*nodes, default=DEFRAG)
    for request in seen:
        world.decider.observe(request)
    return world


def a_rack(name: str, count: int, **changes: object) -> Node:
    return a_node(name, *(a_card(f"{name}-{number}", **changes) for number in range(count)))


def defrag_of(world: World) -> Defrag:
    policy = world.book.nodes(PolicyChoice(node="defrag"))
    assert isinstance(policy, Defrag)
    return policy


def hold_percent(world: World, node: str, uuid: str, share: int) -> None:
    world.hold(node, uuid, 16_384 * share // 100, share)


def test_the_score_of_half_a_card_by_hand():
    """Use falls from 2 x 500 to 500, nothing is lost, the gap falls from 1 to 1/2, the second node stands half way."""
    world = a_world(a_rack("a", 1), a_rack("b", 1), seen=[percent(50)])
    first = 0.4 * (500 - 1000) + 8000 * (0.5 - 1)
    assert world.scores(percent(50)) == {"a": first // 50, "b": (first - 100 * 0.5) // 50}


def test_the_score_of_a_third_by_hand():
    """Use falls from 3 x 300 to 2 x 300, and with 70 held nothing of the last 30 is of use once it is taken."""
    world = a_world(a_rack("a", 1), seen=[percent(30)])
    assert world.scores(percent(30))["a"] == (0.4 * -300 + 8000 * (2 / 3 - 1)) // 50
    hold_percent(world, "a", "a-0", 75)
    assert world.scores(percent(20))["a"] == (-0.6 * (50 - 250)) // 50


class TestGaps:
    MIX = (*[percent(81)] * 5, *[percent(16)] * 3, *[percent(47)] * 4)

    def test_a_16_goes_beside_an_81_because_nothing_dearer_can(self):
        world = a_world(a_rack("n", 3), seen=self.MIX)
        hold_percent(world, "n", "n-1", 47)
        hold_percent(world, "n", "n-2", 81)
        assert world.cards(percent(16)) == [["n-2"]]

    def test_it_does_so_on_another_node_too(self):
        """Each node is the only one of its sort, so that their order does not count."""
        nodes = (a_node(name, a_card(f"{name}-0"), cpu_milli=64_000 + ord(name)) for name in "abc")
        world = a_world(*nodes, seen=self.MIX)
        hold_percent(world, "b", "b-0", 47)
        hold_percent(world, "c", "c-0", 81)
        assert world.node(percent(16)) == "c"

    def test_a_47_goes_beside_a_47(self):
        world = a_world(a_rack("n", 3), seen=self.MIX)
        hold_percent(world, "n", "n-1", 16)
        hold_percent(world, "n", "n-2", 47)
        assert world.cards(percent(47)) == [["n-2"]]

    def test_a_request_that_rounds_up_into_a_gap_that_rounds_down_gets_that_card(self):
        """101 of 1000 MiB are 11 percent, the 109 that are free are 10; the full card beside must not be given."""
        world = a_world(a_rack("n", 2, memory_mib=1000))
        world.hold("n", "n-0", memory_mib=1000)
        world.hold("n", "n-1", memory_mib=891)
        pod = a_pod(a_want(memory_mib=101))
        assert world.cards(pod) == [["n-1"]]
        assert world.place(pod) == "n"

    def test_such_a_gap_is_even_the_best_one(self):
        world = a_world(
            a_rack("n", 2, memory_mib=1000), seen=[a_pod(a_want(memory_mib=895)), a_pod(a_want(memory_mib=101))]
        )
        world.hold("n", "n-1", memory_mib=895)
        assert world.cards(a_pod(a_want(memory_mib=101))) == [["n-1"]]


class TestReserves:
    def test_a_whole_node_stays_free_for_the_few_that_need_one(self):
        world = a_world(a_rack("a", 8), a_rack("b", 8), seen=[*[cards(1)] * 15, cards(8)])
        hold_percent(world, "b", "b-0", 100)
        placed = [world.place(cards(1)) for _ in range(7)]
        assert placed == ["b"] * 7
        assert world.node(cards(8)) == "a"

    def test_without_them_the_order_of_names_decides(self):
        world = a_world(a_rack("a", 8), a_rack("b", 8), seen=[cards(1)] * 16)
        hold_percent(world, "b", "b-0", 100)
        assert world.node(cards(1)) == "a"

    def test_a_scarce_model_is_kept_for_those_who_need_it(self):
        picky = cards(1, selector=CardSelector(use_types=("V100",)))
        nodes = a_rack("a", 2, model="V100"), *(a_rack(f"t{number}", 2, model="T4") for number in range(4))
        indifferent = a_world(*nodes, seen=[cards(1)] * 12)
        assert indifferent.node(cards(1)) == "a"
        careful = a_world(*nodes, seen=[*[cards(1)] * 12, *[picky] * 4])
        assert [careful.place(cards(1)) for _ in range(8)].count("a") == 0
        assert careful.node(picky) == "a"

    def test_nobody_is_refused_for_the_sake_of_a_reserve(self):
        world = a_world(a_rack("a", 8), seen=[*[cards(1)] * 4, *[cards(8)] * 4])
        assert [world.place(cards(1)) for _ in range(9)] == ["a"] * 8 + [None]

    def test_a_place_lost_costs_more_the_fewer_there_are(self):
        def price(racks: int) -> float:
            world = a_world(*(a_rack(f"n{number}", 8) for number in range(racks)), seen=[*[cards(1)] * 31, cards(8)])
            world.scores(cards(1))
            policy = defrag_of(world)
            return float(policy._reserves.prices(np.array([float(racks)]))[0])

        # arrivals of 1/32 x 8 + 31/32 cards each fill the cluster with cards / 1.21875 pods, of which 1/32 want eight
        for racks in (1, 4):
            usual = 8 * racks / 1.21875 / 32
            expected = 8000 * np.exp(-racks / (SIGMAS * usual**0.5))
            assert price(racks) == pytest.approx(expected if expected >= 80 else 0, rel=0.02)

    def test_the_price_of_lost_places_is_taken_from_the_score(self):
        world = a_world(a_rack("a", 8), seen=[*[cards(1)] * 31, cards(8)])
        world.scores(cards(1))
        policy = defrag_of(world)
        price = float(policy._reserves.prices(policy._current().places_left)[0])
        assert price > 1000
        figures = np.zeros((len(world.ledger.fleet.alive), 2), np.float32)
        row = world.ledger.fleet.row_of["a"]
        for lost in (0.0, 1.0, 0.5):
            figures[row] = 1000, lost
            assert policy.settle(figures, cards(1))[row] == np.floor((1000 - lost * price) / TIE_WIDTH)

    def test_a_place_is_lost_where_the_pod_would_stand_and_a_part_of_one_where_it_was_nearly_there(self):
        world = a_world(a_rack("a", 8), a_rack("b", 8), a_rack("c", 8), seen=[*[cards(1)] * 31, cards(8)])
        hold_percent(world, "b", "b-0", 100)
        for number in range(6):
            hold_percent(world, "c", f"c-{number}", 100)
        world.scores(cards(1))
        lost = world.decider._outlooks[cards(1)].figures[:3, 1]
        assert lost == pytest.approx([1 - (7 / 8) ** 4, (7 / 8) ** 4 - (6 / 8) ** 4, (2 / 8) ** 4 - (1 / 8) ** 4])

    def test_room_for_large_pods_comes_back_after_it_was_lost(self):
        world = a_world(a_rack("a", 8), a_rack("b", 8), seen=[*[cards(1)] * 31, cards(8)])
        hold_percent(world, "a", "a-0", 100)
        for number in range(4):
            hold_percent(world, "b", f"b-{number}", 100)
        assert world.node(cards(1)) == "b"

    def test_live_pods_count_where_there_are_more_than_usual(self):
        world = a_world(*(a_rack(f"n{number}", 2) for number in range(4)), seen=[*[cards(1)] * 31, cards(2)])
        world.scores(cards(1))
        before = defrag_of(world)._reserves.prices(np.array([1.0]))
        for number in range(4):
            world.ledger.adopt(a_ref(f"uid-{number}"), cards(2), an_allocation(f"n{number}"))
        for _ in range(40):
            world.decider.observe(cards(1))
        world.decider.observe(cards(2))
        world.scores(cards(1))
        assert defrag_of(world)._reserves.prices(np.array([1.0])) > before

    @pytest.mark.parametrize(
        ("request_", "special"),
        [
            (cards(1), False),
            (percent(20), False),
            (cards(2), True),
            (percent(20, selector=CardSelector(use_types=("T4",))), True),
        ],
    )
    def test_reserves_are_for_several_cards_or_certain_ones(self, request_, special):
        assert is_special(shape_of(request_)) is special
        assert not is_special(shape_of(a_pod()))


class TestOrder:
    def test_a_node_stands_by_name_among_nodes_of_its_sort(self):
        world = a_world(a_rack("b", 2), a_rack("a", 2), a_rack("d", 2), a_rack("c", 4), a_node("e"))
        order = order_in_class(world.ledger.fleet)
        by_name = {name: float(order[row]) for name, row in world.ledger.fleet.row_of.items()}
        assert by_name == pytest.approx({"a": 0, "b": 1 / 3, "d": 2 / 3, "c": 0, "e": 0})

    def test_the_order_is_worth_two_ties_from_first_to_last(self):
        world = a_world(*(a_rack(f"n{number}", 1) for number in range(8)), seen=[cards(1)])
        scores = world.scores(cards(1))
        steps = [scores["n0"] - scores[f"n{number}"] for number in range(8)]
        assert steps == sorted(steps)
        assert 1 <= steps[-1] <= ORDER_WEIGHT / TIE_WIDTH

    def test_nodes_that_join_find_their_place_at_the_next_review(self):
        world = a_world(a_rack("b", 1), a_rack("c", 1), seen=[cards(1)])
        world.scores(cards(1))
        world.ledger.put_node(a_rack("a", 1))
        for _ in range(4):
            world.decider.observe(cards(1))
        world.scores(cards(1))
        assert np.array_equal(defrag_of(world)._order, order_in_class(world.ledger.fleet))


class TestLearning:
    def test_it_starts_before_anything_was_seen(self):
        world = a_world(a_rack("a", 1), a_rack("b", 1))
        assert world.node(percent(50)) == "a"

    def test_reviews_come_often_at_first_and_then_every_five_hundred_pods(self):
        world = a_world(a_rack("a", 1))
        policy, reviews = defrag_of(world), []
        for seen in range(1, 3000):
            before = policy._review_at
            world.decider.observe(percent(50))
            if policy._review_at != before:
                reviews.append(seen)
        assert reviews[:10] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
        assert set(np.diff(reviews[10:])) == {REVIEW_EVERY}

    def test_an_unchanged_mix_is_not_fitted_again(self):
        world = a_world(a_rack("a", 2), seen=[percent(50), cards(2)] * 300)
        epoch = defrag_of(world).epoch
        for _ in range(1000):
            world.decider.observe(percent(50))
            world.decider.observe(cards(2))
        assert defrag_of(world).epoch == epoch

    def test_a_mix_that_drifts_is_followed(self, monkeypatch):
        """A node is kept for pods of eight cards while they come, and no longer once they have stayed away."""
        monkeypatch.setitem(
            policies.OF_BOTH, "defrag", lambda around: Defrag(around.fleet, around.live, Mix(half_life_pods=50))
        )
        world = a_world(a_rack("a", 8), a_rack("b", 8), seen=[*[cards(1)] * 15, cards(8)])
        hold_percent(world, "b", "b-0", 100)
        assert world.node(cards(1)) == "b"
        for _ in range(3000):
            world.decider.observe(cards(1))
        assert world.node(cards(1)) == "a"
        for _ in range(600):
            world.decider.observe(cards(8))
        assert world.node(cards(1)) == "b"

    def test_pods_without_cards_are_placed_and_leave_the_mix_of_cards_alone(self):
        world = a_world(a_rack("a", 2), a_node("b"), seen=[a_pod(cpu_milli=1000)] * 10)
        assert world.node(a_pod(cpu_milli=1000)) in ("a", "b")
        assert world.node(percent(50)) == "a"

    def test_a_pod_without_cards_goes_where_no_cards_starve(self):
        world = a_world(
            a_node("a", *a_rack("a", 2).devices, cpu_milli=4000), a_node("b", cpu_milli=4000), seen=[cards(1)]
        )
        assert world.node(a_pod(cpu_milli=3500)) == "b"

    def test_a_shape_that_no_card_can_hold_does_no_harm(self):
        world = a_world(a_rack("a", 2), seen=[percent(50), cards(2, selector=CardSelector(use_types=("H100",)))])
        assert world.node(percent(50)) == "a"

    def test_vendors_on_one_node_are_each_given_their_own(self):
        devices: list[Device] = [a_card("N"), a_card("D", vendor="DCU")]
        world = a_world(a_node("a", *devices), seen=[percent(50), percent(50, vendor="DCU")])
        assert world.cards(percent(50)) == [["N"]]
        assert world.cards(percent(50, vendor="DCU")) == [["D"]]

    def test_many_different_requests_do_not_pile_up(self):
        world = a_world(a_rack("a", 1))
        for memory in range(1, MAX_PREFERENCES + 200):
            world.decider.allocate(a_pod(a_want(memory_mib=memory)), 0)
        assert len(defrag_of(world)._preferences) <= MAX_PREFERENCES


class TestChangingClusters:
    """What was fitted to the nodes of yesterday must not stumble over those of today."""

    def test_a_new_kind_of_card_between_two_pods(self):
        world = a_world(a_rack("a", 2), seen=[cards(2)])
        assert world.node(cards(2)) == "a"
        world.ledger.put_node(a_rack("b", 2, model="other"))
        world.decider.observe(cards(2))
        assert world.fitting(cards(2)) == ["a", "b"]

    def test_a_new_sort_of_node_that_parts_a_group(self):
        """On nodes of 64 cores both pods are alike; a node of 10 cores can hold only one of them."""
        modest, greedy = cards(2), a_pod(a_want(2, memory_percent=100, cores_percent=100), cpu_milli=50_000)
        world = a_world(a_rack("a", 2), seen=[modest, greedy] * 5)
        assert world.node(modest) == "a"
        assert defrag_of(world).figures == 2
        world.ledger.put_node(a_node("b", a_card("b-0"), a_card("b-1"), cpu_milli=10_000))
        for _ in range(100):
            for pod in (modest, greedy):
                world.decider.observe(pod)
                assert world.node(pod) is not None
        assert defrag_of(world).figures == 3

    def test_nodes_that_leave(self):
        world = a_world(a_rack("a", 2), a_rack("b", 4), seen=[cards(2), cards(4)] * 3)
        assert world.node(cards(4)) == "b"
        world.ledger.drop_node("b")
        for _ in range(20):
            world.decider.observe(cards(4))
            assert world.node(cards(4)) is None
            assert world.node(cards(2)) == "a"


def test_the_document_has_the_figures_of_the_code():
    text = (Path(__file__).parents[4] / "docs/policies.md").read_text(encoding="utf-8")
    weights = f"{APPRAISAL.useful}·ΔU - {APPRAISAL.lost}·ΔF + {GAP_WEIGHT:.0f}·ΔV - Σ price_g · lost_g"
    assert f"⌊ ({weights} - {ORDER_WEIGHT:.0f}·order) / {TIE_WIDTH:.0f} ⌋" in text
    assert f"exp(-C_g / ({SIGMAS:.0f}·√M_g))" in text
    assert f"below {NEGLIGIBLE:.0%} of that pod".replace("%", " %") in text
    assert f"then every {REVIEW_EVERY}" in text
    assert f"A pod counts half after {HALF_LIFE_PODS:,} more" in text


def test_it_learns_from_pods_that_chose_another_policy():
    world = a_world(a_rack("a", 1))
    for _ in range(4):
        world.decider.observe(a_pod(a_want(1, memory_percent=50), policy=PolicyChoice(node="binpack")))
    assert defrag_of(world)._current().gap_price[1][50] == pytest.approx(0.5)


def test_a_shape_that_no_card_can_hold_does_not_weigh():
    misspelt = percent(50, selector=CardSelector(use_types=("A1000",)))
    world = a_world(a_rack("a", 2), seen=[percent(50)] * 6 + [misspelt] * 2)
    catalogue = defrag_of(world)._current().catalogue
    weights = dict(zip(catalogue.shapes, catalogue.weight.tolist(), strict=True))
    assert weights[shape_of(percent(50))] == pytest.approx(1.0)
    assert weights.get(shape_of(misspelt), 0.0) == 0.0


def test_a_shape_that_is_new_and_special_is_fitted_at_the_next_review():
    world = a_world(a_rack("a", 4), seen=[cards(1)] * 512)
    world.scores(cards(1))
    for number in range(REVIEW_EVERY):
        world.decider.observe(cards(4 if number < 3 else 1))
    assert shape_of(cards(4)) in defrag_of(world)._current().catalogue.shapes


def test_a_scheduler_that_restarts_begins_with_the_pods_that_are_there():
    world = a_world(a_rack("a", 4))
    for number in range(4):
        world.ledger.adopt(a_ref(f"uid-{number}"), percent(50), an_allocation("a"))
    assert defrag_of(world)._current().gap_price[1][50] == pytest.approx(0.5)
    world.decider.observe(percent(30))
    frequencies = dict(defrag_of(world)._mix.frequencies())
    assert frequencies[shape_of(percent(50))] == pytest.approx(0.8, abs=0.01)
