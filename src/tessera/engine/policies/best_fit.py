"""Leave the least CPU and GPU idle on the node, weighed equally; the classic packing rule to be measured against."""

import numpy as np

from tessera.engine.arrays import Bools, Doubles, Floats
from tessera.engine.demand import Demand
from tessera.engine.fleet import Fleet
from tessera.engine.policy import CardPolicy, NodePolicy
from tessera.engine.trial import Cards, Trial


class BestFit(NodePolicy, CardPolicy):
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    @property
    def epoch(self) -> int:
        """Scores are relative to the largest node."""
        return int(self._fleet.cpu_total.max(initial=1))

    def keys(self, demand: Demand, cards: Cards, eligible: Bools) -> Doubles:  # noqa: ARG002
        return -cards.free_memory / cards.fleet.kind_memory[cards.kind]

    def score(self, trial: Trial) -> Floats:
        cards = trial.after
        cpu = cards.cpu_free / self.epoch
        cards_left = (cards.free_memory / cards.fleet.kind_memory[cards.kind]).sum(axis=1) / max(cards.fleet.width, 1)
        return (-(cpu + cards_left) / 2).astype(np.float32)[:, None]
