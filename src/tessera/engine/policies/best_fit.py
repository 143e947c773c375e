"""Leave the least CPU and GPU idle on the node, weighed equally; the classic packing rule to be measured against."""

import numpy as np

from tessera.engine.arrays import Floats
from tessera.engine.policies.relative import RelativeToLargest
from tessera.engine.trial import Trial


class BestFit(RelativeToLargest):
    def score(self, trial: Trial) -> Floats:
        cards = trial.after
        cpu = cards.cpu_free / self.epoch
        cards_left = (cards.free_memory / cards.fleet.kind_memory[cards.kind]).sum(axis=1) / max(cards.fleet.width, 1)
        return (-(cpu + cards_left) / 2).astype(np.float32)[:, None]
