"""Prefer cards that sit together on one NUMA node: the fullest one that still has enough of them."""

import numpy as np

from tessera.engine.arrays import Bools, Doubles
from tessera.engine.demand import Demand
from tessera.engine.policy import CardPolicy
from tessera.engine.trial import Cards


class NumaCards(CardPolicy):
    def keys(self, demand: Demand, cards: Cards, eligible: Bools) -> Doubles:
        numa = cards.fleet.numa[cards.rows]
        keys = np.zeros(numa.shape)
        width = float(cards.fleet.width)
        for node in map(int, np.unique(numa)):
            here = numa == node
            count: Doubles = np.count_nonzero(eligible & here, axis=1)[:, None].astype(np.float64)
            liking: Doubles = np.where(count >= demand.request.count, 2.0 * width - count, count - width)
            keys = np.where(here, liking - node / 1024.0, keys)
        return keys
