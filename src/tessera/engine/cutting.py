"""What the rest of a card is worth.

Fractions are cut out of cards as lengths out of rolls: the fewest cards that can hold the mix is a cutting-stock
problem, and the duals of its linear relaxation price each size (Gilmore and Gomory, 1961). A gap is worth the best
set of sizes that fits into it, an empty card is worth one. So a 0.16 goes into the gap beside a 0.81, because nothing
dearer can.
"""

from collections.abc import Sequence

import numpy as np

from tessera.engine.arrays import Doubles

WHOLE = 100
_MAX_PIVOTS = 400


def price_gaps(sizes: Sequence[int], demand: Sequence[float]) -> Doubles:
    """The worth of a gap of 0 … 100 percent of a card, given the sizes wanted and how often each is."""
    best, _ = _fill(sizes, _dual_prices(sizes, np.array(demand) / sum(demand)) if sizes else ())
    best[WHOLE] = max(best[WHOLE], 1.0)
    return np.array(best) / best[WHOLE]


def _dual_prices(sizes: Sequence[int], demand: Doubles) -> list[float]:
    """Column generation from the patterns that repeat one size; each round adds the pattern that pays best."""
    basis = np.diag([float(WHOLE // size) for size in sizes])
    prices: list[float] = []
    for _ in range(_MAX_PIVOTS):
        inverse = np.linalg.inv(basis)
        prices = np.maximum(inverse.sum(axis=0), 0.0).tolist()  # every pattern costs one card
        best, pattern = _fill(sizes, prices)
        if best[WHOLE] <= 1.0 + 1e-9:
            break
        usage = (inverse * demand).sum(axis=1)
        direction = (inverse * np.array(pattern)).sum(axis=1)
        ratios = np.where(direction > 1e-12, usage / np.where(direction > 1e-12, direction, 1.0), np.inf)
        basis[:, int(ratios.argmin())] = pattern
    return prices


def _fill(sizes: Sequence[int], prices: Sequence[float]) -> tuple[list[float], list[float]]:
    """The dearest set of sizes for every gap (unbounded knapsack), and the one for a whole card.

    Plain lists: with some twenty sizes they are faster than arrays.
    """
    best, choice = [0.0] * (WHOLE + 1), [-1] * (WHOLE + 1)
    for gap in range(1, WHOLE + 1):
        top, taken = best[gap - 1], -1
        for position, size in enumerate(sizes):
            if size <= gap and prices[position] + best[gap - size] > top + 1e-15:
                top, taken = prices[position] + best[gap - size], position
        best[gap], choice[gap] = top, taken
    pattern, gap = [0.0] * len(sizes), WHOLE
    while gap > 0:
        taken = choice[gap]
        if taken >= 0:
            pattern[taken] += 1
        gap -= sizes[taken] if taken >= 0 else 1
    return best, pattern
