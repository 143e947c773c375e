"""Cards that talk to each other fast go to pods that use several; a pod of one card takes the worst connected.

For several cards every set of that size is tried, all rows at once, as long as there are not too many sets; beyond
that the set grows from its best connected card. A node is as good as the links within the set it would give.
"""

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from tessera.engine.arrays import Bools, Doubles, Floats, Ints, Rows, contract
from tessera.engine.demand import Demand
from tessera.engine.policies.usage import node_usage
from tessera.engine.policy import CardPolicy, NodePolicy, best_columns
from tessera.engine.trial import Cards, Trial
from tessera.model.requests import EQUAL_WEIGHTS

MAX_SETS = 1000


class TopologyCards(CardPolicy):
    def keys(self, demand: Demand, cards: Cards, eligible: Bools) -> Doubles:
        """For one card the fewer links the better; for several, those of the best set are liked and no others."""
        fleet, count = cards.fleet, demand.request.count
        pattern = fleet.link_pattern[cards.rows]
        if count == 1 or count > fleet.width:
            return -fleet.links.sum(axis=2)[pattern].astype(np.float64)
        scenes, scene_of = _distinct(pattern, eligible)
        patterns, able = scenes[:, 0], scenes[:, 1:].astype(np.bool_)
        links = fleet.links[patterns] * (able[:, :, None] & able[:, None, :])
        few = comb(fleet.width, count) <= MAX_SETS
        sets = _best_sets(links, able, count) if few else _grown_sets(links, able, count)
        return sets[scene_of].astype(np.float64)


class TopologyNodes(NodePolicy):
    """The sum of the links within the chosen sets; how full the node is decides between equals."""

    def score(self, trial: Trial) -> Floats:
        total: Floats = np.zeros(len(trial.fits), np.float32)
        pattern = trial.before.fleet.link_pattern[trial.before.rows]
        for pick in trial.picks:
            scenes, scene_of = _distinct(pattern, pick.cards)
            chosen = scenes[:, 1:].astype(np.float32)
            links = trial.before.fleet.links[scenes[:, 0]]
            total += (contract("rc,rcd,rd->r", chosen, links, chosen) / 2)[scene_of]
        return (total[:, None] + node_usage(trial, EQUAL_WEIGHTS) / 8).astype(np.float32)


def _distinct(pattern: Ints, cards: Bools) -> tuple[Ints, Rows]:
    """The different pairs of pattern and cards, as rows of integers, and which of them each row is."""
    scenes = np.concatenate([pattern[:, None], cards], axis=1, dtype=np.int32)
    width = scenes.shape[1] * scenes.itemsize
    _, first, scene_of = np.unique(scenes.view(f"V{width}").ravel(), return_index=True, return_inverse=True)
    return scenes[first], scene_of


def _best_sets(links: Floats, eligible: Bools, count: int) -> Bools:
    """The eligible set with the largest sum of links; the leftmost of equals."""
    rows, width = eligible.shape
    sets, pairs = _sets_of(width, count)
    total = contract("rp,sp->rs", links.reshape(rows, width * width), pairs)
    complete = (eligible[:, None, :] | ~sets).all(axis=2)
    return sets[np.where(complete, total, -1.0).argmax(axis=1)]


@lru_cache(maxsize=64)
def _sets_of(width: int, count: int) -> tuple[Bools, Floats]:
    """Every set of so many cards, and the pairs within each."""
    sets: Bools = np.zeros((comb(width, count), width), np.bool_)
    for position, chosen in enumerate(combinations(range(width), count)):
        sets[position, list(chosen)] = True
    pairs = (sets[:, :, None] & sets[:, None, :]).reshape(len(sets), width * width)
    return sets, pairs.astype(np.float32)


def _grown_sets(links: Floats, eligible: Bools, count: int) -> Bools:
    """Start at the best connected card, add whoever is linked best to those chosen."""
    picked = best_columns(np.where(eligible, links.sum(axis=2), -1.0).astype(np.float64), 1)
    for _ in range(count - 1):
        gain = contract("rc,rcd->rd", picked, links).astype(np.float64)
        picked |= best_columns(np.where(eligible & ~picked, gain, -1.0), 1)
    return picked
