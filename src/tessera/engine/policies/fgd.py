"""Fragmentation gradient descent, after the public description of FGD (Weng et al., USENIX ATC 2023).

A node's fragment is the idle GPU share that the typical shapes cannot use. A pod goes where the fragment grows least.
The score is squeezed through a sigmoid and cut to whole points, as the published simulator does; ties go to the lowest
node name, on which the published figures depend. It is here to be measured against.
"""

import numpy as np

from tessera.engine.arrays import Bools, Doubles, Floats
from tessera.engine.demand import Demand
from tessera.engine.fleet import Fleet
from tessera.engine.landscape import STATES, Appraisal, Landscape, ShapeTable, card_states, share_per_kind
from tessera.engine.mix import A_WHOLE_CARD, Mix, Shape, most_typical, shape_of
from tessera.engine.policy import CardPolicy, NodePolicy
from tessera.engine.trial import Cards, Trial
from tessera.model.requests import PodRequest

ROUNDING = 1e-3  # what single precision may have taken from a score that stands on a whole point


class Fgd(NodePolicy, CardPolicy):
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._mix = Mix(half_life_pods=1e9)
        self._landscape: Landscape | None = None
        self._epoch = 0

    @property
    def epoch(self) -> int:
        self._current()
        return self._epoch

    def study(self, requests: list[PodRequest]) -> None:
        """Take the shape frequencies from these pods, as the published simulator takes them from the whole trace."""
        for request in requests:
            shape = shape_of(request)
            self._mix.observe(Shape(shape.device, shape.cpu_milli, 0))
        self._landscape = None

    def keys(self, demand: Demand, cards: Cards, eligible: Bools) -> Doubles:
        """The score of the node with each of its cards taken in turn."""
        landscape, states = self._current(), card_states(cards)
        row, column = eligible.nonzero()
        before = states[row, column]
        taken = share_per_kind(demand, self._fleet)[cards.kind[row, column]]
        after = before - np.minimum(taken, before % STATES)
        swap: Floats = landscape.table[after] - landscape.table[before]
        keys = np.full(states.shape, -np.inf)
        keys[row, column] = self._points(cards.part(row), landscape.after(cards.rows, states)[row] + swap)
        return keys

    def score(self, trial: Trial) -> Floats:
        points = np.zeros((len(trial.fits), 1), np.float32)
        fitting = np.flatnonzero(trial.fits)
        after = trial.after.part(fitting)
        sums = self._current().after(after.rows, card_states(after))
        points[fitting, 0] = self._points(after, sums)
        return points

    def _points(self, cards: Cards, sums: Floats) -> Floats:
        landscape = self._current()
        value, _ = landscape.appraise(sums, cards)
        grown = (value - landscape.value[cards.rows]) / 1000.0
        return np.floor(100.0 / (1.0 + np.exp(-grown)) + ROUNDING)

    def _current(self) -> Landscape:
        if self._landscape is None or self._landscape.layout != self._fleet.layout:
            typical = _typical_list(self._mix)
            without_cards = sum(share for shape, share in typical if shape.device is None)
            shapes = [(shape, share) for shape, share in typical if shape.device is not None]
            shapes = shapes or [(A_WHOLE_CARD, 1.0 - without_cards)]
            catalogue = ShapeTable(self._fleet, *zip(*shapes, strict=True), by_card=False)
            no_groups: Floats = np.zeros((len(shapes), 0), np.float32)
            appraisal = Appraisal(useful=0.0, lost=1.0, unusable=without_cards)
            self._landscape = Landscape(self._fleet, catalogue, no_groups, appraisal)
            self._epoch += 1
        self._landscape.refresh()
        return self._landscape


def _typical_list(mix: Mix) -> list[tuple[Shape, float]]:
    """The published simulator's list: equally frequent shapes stand larger first, and the shares add up to one."""

    def order(item: tuple[Shape, float]) -> tuple[float, ...]:
        shape, share = item
        milli = (shape.device.memory_mib, shape.device.count) if shape.device else (0, 0)
        return (-round(share, 12), -shape.cpu_milli, -milli[0], -milli[1])

    typical = most_typical(sorted(mix.frequencies(), key=order))
    covered = sum(share for _, share in typical) or 1.0
    return [(shape, share / covered) for shape, share in typical]
