"""What the rest of a card is worth."""

from collections.abc import Mapping
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.engine.cutting import WHOLE, price_gaps

OPENB = {
    5: 7, 11: 24, 14: 1, 16: 74, 22: 62, 23: 140, 27: 4, 29: 1, 32: 328, 33: 7, 35: 6, 37: 47, 44: 2, 46: 128, 47: 750,
    48: 19, 55: 72, 59: 75, 65: 253, 81: 1078,
}  # fmt: skip
"""How often each percentage of one card is wanted in the openb default list."""

sizes_wanted = st.dictionaries(st.integers(1, 99), st.floats(0.01, 100), min_size=1, max_size=12)


def priced(wanted: Mapping[int, float]) -> np.ndarray:
    return price_gaps(list(wanted), list(wanted.values()))


def test_the_prices_of_the_openb_sizes():
    worth = priced(OPENB)
    assert worth[81] == pytest.approx(1)
    assert worth[[55, 59, 65]] == pytest.approx(2 / 3)
    assert worth[[46, 47, 48]] == pytest.approx(1 / 2)
    assert worth[[32, 33, 35, 37, 44]] == pytest.approx(1 / 3)
    assert worth[[23, 27, 29]] == pytest.approx(1 / 4)
    assert worth[22] == pytest.approx(1 / 12)
    assert worth[[5, 11, 14, 16, 19]] == pytest.approx(0)


def test_the_gap_beside_an_81_costs_a_16_nothing_and_an_empty_card_costs_it_a_third():
    worth = priced(OPENB)
    assert worth[19] - worth[19 - 16] == pytest.approx(0)
    assert worth[47] - worth[47 - 16] == pytest.approx(1 / 4)
    assert worth[100] - worth[100 - 16] == pytest.approx(0)
    assert worth[65 + 32] - worth[65] == pytest.approx(1 / 3)


def test_without_fractions_only_a_whole_card_is_worth_something():
    worth = price_gaps([], [])
    assert worth[:WHOLE].tolist() == [0.0] * WHOLE
    assert worth[WHOLE] == 1.0


def test_one_size_is_worth_its_part_of_those_that_a_card_holds():
    worth = price_gaps([30], [5.0])
    assert worth[[29, 30, 59, 60, 90, 99, 100]] == pytest.approx([0, 1 / 3, 1 / 3, 2 / 3, 1, 1, 1])


@given(sizes_wanted)
def test_a_larger_gap_is_worth_no_less_and_a_whole_card_is_worth_one(wanted):
    worth = priced(wanted)
    assert worth[0] == 0
    assert worth[WHOLE] == pytest.approx(1)
    assert (np.diff(worth) >= -1e-12).all()


@given(sizes_wanted)
def test_two_gaps_are_worth_no_more_than_one_of_both_lengths(wanted):
    worth = priced(wanted)
    for left in range(WHOLE + 1):
        assert (worth[left] + worth[: WHOLE + 1 - left] <= worth[left:] + 1e-9).all()


@given(sizes_wanted, st.floats(0.1, 1000))
def test_only_the_proportions_of_the_demand_count(wanted, factor):
    scaled = {size: demand * factor for size, demand in wanted.items()}
    total, again = (sum(demand * worth[size] for size, demand in wanted.items())
                    for worth in (priced(wanted), priced(scaled)))  # fmt: skip
    assert total == pytest.approx(again)


@given(st.dictionaries(st.integers(15, 99), st.floats(0.1, 10), min_size=1, max_size=3))
def test_the_mix_is_worth_the_fewest_cards_that_can_hold_it(wanted):
    worth = priced(wanted)
    cards = sum(demand * worth[size] for size, demand in wanted.items())
    assert cards == pytest.approx(fewest_cards(wanted))


def fewest_cards(wanted: dict[int, float]) -> float:
    """The linear cutting-stock bound by brute force: the best corner of all prices that no pattern exceeds."""
    sizes, demand = np.array(list(wanted)), np.array(list(wanted.values()))
    counts = product(*(range(WHOLE // size + 1) for size in sizes))
    patterns = np.array([count for count in counts if 0 < np.dot(count, sizes) <= WHOLE], float)
    limits = np.vstack([patterns, -np.eye(len(sizes))])
    bounds = np.concatenate([np.ones(len(patterns)), np.zeros(len(sizes))])
    best = 0.0
    for chosen in combinations(range(len(limits)), len(sizes)):
        rows = list(chosen)
        if abs(np.linalg.det(limits[rows])) > 1e-9:
            prices = np.linalg.solve(limits[rows], bounds[rows])
            if (limits @ prices <= bounds + 1e-9).all():
                best = max(best, float(demand @ prices))
    return best
