"""Only cards that nobody else uses."""

import numpy as np

from tessera.engine.arrays import Bools, Doubles
from tessera.engine.demand import Demand
from tessera.engine.policy import CardPolicy
from tessera.engine.trial import Cards


class MutexCards(CardPolicy):
    idle_only = True

    def keys(self, demand: Demand, cards: Cards, eligible: Bools) -> Doubles:  # noqa: ARG002
        return np.zeros(cards.kind.shape)
