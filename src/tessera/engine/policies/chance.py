"""Any node that fits, any card that fits: the floor that every other policy is measured against.

The choice is drawn from a generator with a fixed seed, so a run can be repeated.
"""

import numpy as np

from tessera.engine.arrays import Bools, Doubles, Floats
from tessera.engine.demand import Demand
from tessera.engine.policy import CardPolicy, NodePolicy
from tessera.engine.trial import Cards, Trial
from tessera.model.requests import PodRequest


class Chance(NodePolicy, CardPolicy):
    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def keys(self, demand: Demand, cards: Cards, eligible: Bools) -> Doubles:  # noqa: ARG002
        return self._generator.random(cards.kind.shape)

    def score(self, trial: Trial) -> Floats:
        return np.zeros((len(trial.fits), 1), np.float32)

    def settle(self, figures: Floats, request: PodRequest) -> Floats:  # noqa: ARG002
        return self._generator.random(len(figures), np.float32)
