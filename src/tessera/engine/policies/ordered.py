"""Several card policies in order: the first decides, the next decides between what it finds equal."""

from collections.abc import Sequence

import numpy as np

from tessera.engine.arrays import Bools, Doubles
from tessera.engine.demand import Demand
from tessera.engine.policy import CardPolicy
from tessera.engine.trial import Cards


class OrderedCards(CardPolicy):
    def __init__(self, policies: Sequence[CardPolicy]) -> None:
        self._policies = policies
        self.idle_only = any(policy.idle_only for policy in policies)

    @property
    def epoch(self) -> int:
        return sum(policy.epoch for policy in self._policies)

    def keys(self, demand: Demand, cards: Cards, eligible: Bools) -> Doubles:
        return self._policies[0].keys(demand, cards, eligible)

    def pick(self, demand: Demand, cards: Cards, eligible: Bools) -> Bools:
        keys = [-policy.keys(demand, cards, eligible) for policy in reversed(self._policies)]
        order = np.lexsort((*keys, ~eligible), axis=1)[:, : demand.request.count]
        picked = np.zeros(eligible.shape, np.bool_)
        np.put_along_axis(picked, order, True, axis=1)
        return picked
