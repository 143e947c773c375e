"""How full a card or a node would be: what binpack wants high and spread wants low.

The three figures of a card count as the user weighs them. What the pod itself would take is included.
"""

import numpy as np

from tessera.engine.arrays import Doubles, Floats, Ints
from tessera.engine.demand import Demand
from tessera.engine.trial import Cards, Trial
from tessera.model.requests import ScoringWeights


def card_usage(demand: Demand, cards: Cards, weights: ScoringWeights) -> Doubles:
    fleet, kind = cards.fleet, cards.kind
    slots = (1.0 - cards.free_slots) / fleet.kind_slots[kind]
    cores = (demand.request.cores_percent - cards.free_cores) / fleet.kind_cores[kind]
    memory = (demand.memory[kind] - cards.free_memory) / fleet.kind_memory[kind]
    return weights.slot * slots + weights.core * cores + weights.memory * memory


def node_usage(trial: Trial, weights: ScoringWeights) -> Floats:
    """Between 0 and the sum of the weights; for a pod without cards, how full the host would be."""
    cards = trial.after
    fleet, rows = cards.fleet, cards.rows
    if not trial.request.wants_devices:
        cpu = 1.0 - cards.cpu_free / np.maximum(fleet.cpu_total[rows], 1)
        memory = 1.0 - cards.memory_free / np.maximum(fleet.memory_total[rows], 1)
        return (cpu + memory).astype(np.float32)[:, None]
    present = cards.kind > 0
    used = (
        weights.slot * _share_used(cards.free_slots, fleet.kind_slots[cards.kind] * present)
        + weights.core * _share_used(cards.free_cores, fleet.kind_cores[cards.kind] * present)
        + weights.memory * _share_used(cards.free_memory, fleet.kind_memory[cards.kind] * present)
    )
    return used.astype(np.float32)[:, None]


def _share_used(free: Ints, total: Ints) -> Doubles:
    return 1.0 - free.sum(axis=1, dtype=np.int64) / np.maximum(total.sum(axis=1, dtype=np.int64), 1)
