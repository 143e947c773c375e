"""What the packing rules from the literature have in common: sizes as parts of the largest node, the tightest card."""

from tessera.engine.arrays import Bools, Doubles
from tessera.engine.demand import Demand
from tessera.engine.fleet import Fleet
from tessera.engine.policy import CardPolicy, NodePolicy
from tessera.engine.trial import Cards


class RelativeToLargest(NodePolicy, CardPolicy):
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    @property
    def epoch(self) -> int:
        """The CPU of the largest node, to which scores are relative: another one makes them all stale."""
        return int(self._fleet.cpu_total.max(initial=1))

    def keys(self, demand: Demand, cards: Cards, eligible: Bools) -> Doubles:  # noqa: ARG002
        return -cards.free_memory / cards.fleet.kind_memory[cards.kind]
