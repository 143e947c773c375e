"""What a scheduling policy is.

A card policy says which cards of a node are best, a node policy which node is best once the cards are chosen. Both work
on many rows at once. A policy is one class in one file of `policies`, one line in its registry, one test.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from tessera.engine.arrays import Bools, Doubles, Floats

if TYPE_CHECKING:
    from tessera.engine.demand import Demand
    from tessera.engine.trial import Cards, Trial
    from tessera.model.requests import PodRequest


LEAST_LIKING = np.finfo(np.float64).min


class CardPolicy(ABC):
    idle_only = False
    """Whether only cards that nobody uses will do."""

    @property
    def epoch(self) -> int:
        """Changes when the policy may like other cards than it did so far."""
        return 0

    @abstractmethod
    def keys(self, demand: "Demand", cards: "Cards", eligible: Bools) -> Doubles:
        """How much each card is liked, higher is better. Equal cards are taken from the left, ineligible ones never."""

    def pick(self, demand: "Demand", cards: "Cards", eligible: Bools) -> Bools:
        """The best `count` eligible cards of each row."""
        liked = np.maximum(self.keys(demand, cards, eligible), LEAST_LIKING)
        return best_columns(np.where(eligible, liked, -np.inf), demand.request.count)


class NodePolicy(ABC):
    """Scores are kept per row until the row changes, so `score` may depend on the row and the request alone.

    What depends on the rest of the fleet goes into `settle`, which sees the kept figures of all rows.
    """

    @property
    def figures(self) -> int:
        """How many figures `score` gives per row."""
        return 1

    @property
    def epoch(self) -> int:
        """Changes when everything scored so far has become stale."""
        return 0

    @abstractmethod
    def score(self, trial: "Trial") -> Floats:
        """Figures for each row of the trial, shape (rows, figures). Higher is better."""

    def settle(self, figures: Floats, request: "PodRequest") -> Floats:  # noqa: ARG002
        """One score per row from the kept figures of all rows."""
        return figures[:, 0]

    def observe(self, request: "PodRequest") -> None:  # noqa: B027
        """A pod with this request has arrived."""


def best_columns(keys: Doubles, count: int) -> Bools:
    picked = np.zeros(keys.shape, np.bool_)
    if keys.size == 0:
        return picked
    if count == 1:
        picked[np.arange(len(keys)), keys.argmax(axis=1)] = True
        return picked
    order = np.argsort(-keys, axis=1, kind="stable")[:, :count]
    np.put_along_axis(picked, order, True, axis=1)
    return picked
