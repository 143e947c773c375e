"""Cards that talk to each other fast go to pods that use several; a pod of one card takes the worst connected.

For several cards every set of that size is tried, all rows at once, as long as there are not too many sets; beyond
that the set grows from its best pair. A node is as good as the links within the set it would give.
"""

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from tessera.engine.arrays import Bools, Doubles, Floats, Ints
from tessera.engine.demand import Demand
from tessera.engine.policies.usage import node_usage
from tessera.engine.policy import CardPolicy, NodePolicy, best_columns
from tessera.engine.trial import Cards, Trial
from tessera.model.requests import EQUAL_WEIGHTS

MAX_SETS = 1000


class TopologyCards(CardPolicy):
    def keys(self, demand: Demand, cards: Cards) -> Doubles:  # noqa: ARG002
        links = _links(cards)
        return -links.sum(axis=2).astype(np.float64)

    def pick(self, demand: Demand, cards: Cards, eligible: Bools) -> Bools:
        count = demand.request.count
        if count == 1 or cards.fleet.links is None:
            return super().pick(demand, cards, eligible)
        links = _links(cards) * (eligible[:, :, None] & eligible[:, None, :])
        if comb(cards.fleet.width, count) <= MAX_SETS:
            return _best_sets(links, eligible, count)
        return _grown_sets(links, eligible, count)


class TopologyNodes(NodePolicy):
    """The sum of the links within the chosen set; how full the node is decides between equals."""

    def score(self, trial: Trial) -> Floats:
        links = _links(trial.before)
        total = np.zeros(len(trial.fits))
        for pick in trial.picks:
            together = pick.cards[:, :, None] & pick.cards[:, None, :]
            total += (links * together).sum(axis=(1, 2)) / 2
        return (total[:, None] + node_usage(trial, EQUAL_WEIGHTS) / 8).astype(np.float32)


def _links(cards: Cards) -> Ints:
    if cards.fleet.links is None:
        return np.zeros((*cards.kind.shape, cards.fleet.width), np.int32)
    return cards.fleet.links[cards.rows]


def _best_sets(links: Ints, eligible: Bools, count: int) -> Bools:
    """The eligible set with the largest sum of links; the leftmost of equals."""
    rows, width = eligible.shape
    sets = _sets_of(width, count)
    pairs = (sets[:, :, None] & sets[:, None, :]).reshape(len(sets), width * width)
    total = links.reshape(rows, width * width).astype(np.float32) @ pairs.T.astype(np.float32)
    missing = (~eligible).astype(np.float32) @ sets.T.astype(np.float32)
    return sets[np.where(missing > 0, -1.0, total).argmax(axis=1)]


@lru_cache(maxsize=64)
def _sets_of(width: int, count: int) -> Bools:
    sets = np.zeros((comb(width, count), width), np.bool_)
    for position, chosen in enumerate(combinations(range(width), count)):
        sets[position, list(chosen)] = True
    return sets


def _grown_sets(links: Ints, eligible: Bools, count: int) -> Bools:
    """Start at the best connected card, add whoever is linked best to those chosen."""
    picked = best_columns(np.where(eligible, links.sum(axis=2), -1).astype(np.float64), 1)
    for _ in range(count - 1):
        gain = np.einsum("rc,rcd->rd", picked, links).astype(np.float64)
        picked |= best_columns(np.where(eligible & ~picked, gain, -1.0), 1)
    return picked
