"""What the rest of a card is worth.

Fractions are cut out of cards as lengths out of rolls: the fewest cards that can hold the mix is a cutting-stock
problem, and the duals of its linear relaxation price each size (Gilmore and Gomory, 1961). A gap is worth the best
set of sizes that fits into it, an empty card is worth one. So a 0.16 goes into the gap beside a 0.81, because nothing
dearer can.
"""

import numpy as np

from tessera.engine.arrays import Doubles

WHOLE = 100
_MAX_PIVOTS = 400


def price_gaps(sizes: list[int], demand: list[float]) -> Doubles:
    """The worth of a gap of 0 … 100 percent of a card, given the sizes wanted and how often each is."""
    if not sizes:
        worth = np.zeros(WHOLE + 1)
        worth[WHOLE] = 1.0
        return worth
    prices = _dual_prices(np.array(sizes), np.array(demand) / sum(demand))
    best, _ = _fill(np.array(sizes), prices)
    best[WHOLE] = max(best[WHOLE], 1.0)
    return best / best[WHOLE]


def _dual_prices(sizes: np.ndarray[tuple[int], np.dtype[np.int64]], demand: Doubles) -> Doubles:
    """Column generation from the patterns that repeat one size; each round adds the pattern that pays best."""
    basis = np.diag((WHOLE // sizes).astype(np.float64))
    usage = demand / basis.diagonal()
    prices = 1.0 / basis.diagonal()
    for _ in range(_MAX_PIVOTS):
        inverse = np.linalg.inv(basis)
        prices = inverse.sum(axis=0)  # every pattern costs one card
        best, pattern = _fill(sizes, np.maximum(prices, 0.0))
        if best[WHOLE] <= 1.0 + 1e-9:
            break
        usage = inverse @ demand
        direction = inverse @ pattern
        ratios = np.where(direction > 1e-12, usage / np.where(direction > 1e-12, direction, 1.0), np.inf)
        basis[:, int(ratios.argmin())] = pattern
    return np.maximum(prices, 0.0)


def _fill(sizes: np.ndarray[tuple[int], np.dtype[np.int64]], prices: Doubles) -> tuple[Doubles, Doubles]:
    """The dearest set of sizes for every gap (unbounded knapsack), and the one for a whole card."""
    best = np.zeros(WHOLE + 1)
    choice = np.full(WHOLE + 1, -1)
    for gap in range(1, WHOLE + 1):
        fitting = np.flatnonzero(sizes <= gap)
        best[gap] = best[gap - 1]
        if len(fitting):
            worth = prices[fitting] + best[gap - sizes[fitting]]
            top = int(worth.argmax())
            if worth[top] > best[gap] + 1e-15:
                best[gap], choice[gap] = worth[top], fitting[top]
    pattern, gap = np.zeros(len(sizes)), WHOLE
    while gap > 0:
        if choice[gap] < 0:
            gap -= 1
            continue
        pattern[choice[gap]] += 1
        gap -= int(sizes[choice[gap]])
    return best, pattern
