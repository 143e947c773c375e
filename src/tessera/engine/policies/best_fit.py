"""Leave the least CPU and GPU idle on the node, weighed equally; the classic packing rule to be measured against."""

import numpy as np

from tessera.engine.arrays import Doubles, Floats
from tessera.engine.demand import Demand
from tessera.engine.policy import CardPolicy, NodePolicy
from tessera.engine.trial import Cards, Trial


class BestFit(NodePolicy, CardPolicy):
    def keys(self, demand: Demand, cards: Cards) -> Doubles:  # noqa: ARG002
        return -cards.free_memory / cards.fleet.kind_memory[cards.kind]

    def score(self, trial: Trial) -> Floats:
        cards = trial.after
        cpu = cards.cpu_free / max(int(cards.fleet.cpu_total.max()), 1)
        cards_left = (cards.free_memory / cards.fleet.kind_memory[cards.kind]).sum(axis=1) / max(cards.fleet.width, 1)
        return (-(cpu + cards_left) / 2).astype(np.float32)[:, None]
