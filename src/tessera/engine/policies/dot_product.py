"""Prefer where the pod's request and what is free point least the same way, after Tetris (Grandl et al., SIGCOMM 2014).

As the public FGD simulator uses it: CPU and GPU as parts of the largest node, the smaller the dot product the better,
cut to whole points. It is here to be measured against.
"""

import numpy as np

from tessera.engine.arrays import Floats
from tessera.engine.policies.relative import RelativeToLargest
from tessera.engine.trial import Trial


class DotProduct(RelativeToLargest):
    def score(self, trial: Trial) -> Floats:
        cards, host = trial.before, trial.request.host
        most_cpu, most_cards = self.epoch, max(cards.fleet.width, 1)
        cpu = (cards.cpu_free + host.cpu_milli) / most_cpu * (host.cpu_milli / most_cpu)
        share = cards.free_memory / cards.fleet.kind_memory[cards.kind]
        left = trial.after.free_memory / cards.fleet.kind_memory[cards.kind]
        gpu = share.sum(axis=1) / most_cards * ((share - left).sum(axis=1) / most_cards)
        return np.floor(100.0 * (1.0 - (cpu + gpu) / 2)).astype(np.float32)[:, None]
