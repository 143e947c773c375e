"""Prefer the card and the node that stay emptiest, so that pods disturb each other the least."""

from tessera.engine.arrays import Bools, Doubles, Floats
from tessera.engine.demand import Demand
from tessera.engine.policies.usage import card_usage, node_usage
from tessera.engine.policy import CardPolicy, NodePolicy
from tessera.engine.trial import Cards, Trial
from tessera.model.requests import ScoringWeights


class SpreadCards(CardPolicy):
    def __init__(self, weights: ScoringWeights) -> None:
        self._weights = weights

    def keys(self, demand: Demand, cards: Cards, eligible: Bools) -> Doubles:  # noqa: ARG002
        return -card_usage(demand, cards, self._weights)


class SpreadNodes(NodePolicy):
    def __init__(self, weights: ScoringWeights) -> None:
        self._weights = weights

    def score(self, trial: Trial) -> Floats:
        return -node_usage(trial, self._weights)
