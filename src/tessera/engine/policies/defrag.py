"""Place every pod where it hurts the pods to come the least.

Three things are weighed. How much use and how much loss for the usual shapes the node's idle part would have after the
placement (`landscape`). What the remaining gap of the card is worth (`cutting`). And, for shapes that need several
cards or certain models, how few places are left for them: each lost place has a price that rises as they run out, so
that room for large pods survives pods that come and go. The mix is learned from the pods seen so far. A pod is never
refused that fits somewhere.
"""

from collections.abc import Mapping

import numpy as np

from tessera.engine.arrays import Bools, Doubles, Floats
from tessera.engine.demand import Demand
from tessera.engine.fleet import Fleet
from tessera.engine.landscape import Appraisal, Landscape, ShapeTable, card_states, share_per_kind
from tessera.engine.mix import A_WHOLE_CARD, Mix, Shape, most_typical, shape_of
from tessera.engine.policy import CardPolicy, NodePolicy
from tessera.engine.reserves import Reserves, is_special, node_sorts
from tessera.engine.trial import Cards, Trial
from tessera.model.requests import DeviceRequest, PodRequest

APPRAISAL = Appraisal(useful=0.4, lost=0.6)
GAP_WEIGHT = 8000.0
ORDER_WEIGHT = 100.0
TIE_WIDTH = 50.0
REVIEW_EVERY = 500
DRIFT = 0.1  # fit again when this much of the mix has moved,
NEWS = 0.002  # or when so many of the pods want something special that was unknown
MAX_GROUP_SHAPES = 256
MAX_PREFERENCES = 1024


class Defrag(NodePolicy, CardPolicy):
    """One object is both policies: the cards and the node are chosen with the same tables."""

    def __init__(self, fleet: Fleet, live: Mapping[PodRequest, int], mix: Mix | None = None) -> None:
        self._fleet = fleet
        self._live = live
        self._mix = mix or Mix()
        self._landscape: Landscape | None = None
        self._reserves = Reserves.none()
        self._shapes = ShapeTable(fleet, [A_WHOLE_CARD], [1.0], by_card=True)
        self._order: Floats = np.zeros(0, np.float32)
        self._preferences: dict[DeviceRequest, Doubles] = {}
        self._review_at = 1
        self._fitted: dict[Shape, float] = {}
        self._epoch = 0

    @property
    def figures(self) -> int:
        return 1 + self._reserves.concerned.shape[1]

    @property
    def epoch(self) -> int:
        self._current()
        return self._epoch

    def observe(self, request: PodRequest) -> None:
        self._recall()
        self._mix.observe(shape_of(request))
        if self._mix.seen >= self._review_at:
            self._review_at = self._mix.seen + min(self._mix.seen, REVIEW_EVERY)
            self._review()

    def keys(self, demand: Demand, cards: Cards, eligible: Bools) -> Doubles:  # noqa: ARG002
        landscape = self._current()
        preference = self._preferences.get(demand.request)
        if preference is None:
            if len(self._preferences) >= MAX_PREFERENCES:
                self._preferences.clear()
            preference = landscape.card_preference(share_per_kind(demand, self._fleet), GAP_WEIGHT)
            self._preferences[demand.request] = preference
        return preference[card_states(cards)]

    def score(self, trial: Trial) -> Floats:
        landscape = self._current()
        figures = np.zeros((len(trial.fits), self.figures), np.float32)
        fitting = trial.fits.nonzero()[0]
        after = trial.after.part(fitting)
        rows = after.rows
        sums = landscape.after(rows, card_states(after))
        value, room = landscape.appraise(sums, after)
        gap = landscape.gap_worth(sums) - landscape.gap_worth(landscape.sums[rows])
        gained = value - landscape.value[rows] + np.float32(GAP_WEIGHT) * gap
        figures[fitting, 0] = gained - np.float32(ORDER_WEIGHT) * self._order[rows]
        lost = landscape.places[rows] - landscape.near_places(room)
        figures[fitting, 1:] = self._reserves.of_rows(rows, lost)
        return figures

    def settle(self, figures: Floats, request: PodRequest) -> Floats:  # noqa: ARG002
        score, cost = figures[:, 0], self._reserves.cost(figures[:, 1:], self._current().places_left)
        if cost is not None:
            score = score - cost
        return np.floor(score / np.float32(TIE_WIDTH))

    def _recall(self) -> None:
        if not self._mix.seen and self._live:
            self._mix.recall(_live_shapes(self._live))

    def _review(self) -> None:
        """Fit again if the mix or the nodes have moved; if not, let the reserves follow the pods that are live now."""
        fleet, landscape, frequencies = self._fleet, self._landscape, _with_cards(self._mix)
        self._landscape = None
        moved = sum(abs(share - self._fitted.get(shape, 0.0)) for shape, share in frequencies)
        news = sum(share for shape, share in frequencies if is_special(shape) and shape not in self._fitted)
        if landscape is None or landscape.layout != fleet.layout or moved > DRIFT or news > NEWS:
            return
        followed = self._reserves.follow(fleet, self._shapes, dict(frequencies), _live_shapes(self._live))
        if followed is not None and np.array_equal(order_in_class(fleet), self._order):
            self._landscape, self._reserves = landscape, followed

    def _current(self) -> Landscape:
        if self._landscape is None or self._landscape.layout != self._fleet.layout:
            self._landscape = self._fit()
            self._preferences.clear()
            self._epoch += 1
        self._landscape.refresh()
        return self._landscape

    def _fit(self) -> Landscape:
        self._recall()
        fleet = self._fleet
        frequencies = _with_cards(self._mix)
        self._fitted = dict(frequencies)
        typical = most_typical(frequencies)
        special = [(shape, share) for shape, share in frequencies if is_special(shape)][:MAX_GROUP_SHAPES]
        shapes = list(dict.fromkeys(shape for shape, _ in [*typical, *special]))
        weight = dict(typical)
        self._shapes = ShapeTable(fleet, shapes, [weight.get(shape, 0.0) for shape in shapes], by_card=True)
        self._reserves = Reserves.plan(fleet, self._shapes, self._fitted, _live_shapes(self._live))
        self._order = order_in_class(fleet)
        groups = self._reserves.membership
        counted = np.flatnonzero((self._shapes.weight > 0) | groups.any(axis=1))
        return Landscape(fleet, self._shapes.part(counted), groups[counted], APPRAISAL)


def _with_cards(mix: Mix) -> list[tuple[Shape, float]]:
    """The frequencies of the shapes that want cards, or something to start from."""
    frequencies = [(shape, share) for shape, share in mix.frequencies() if shape.device is not None]
    total = sum(share for _, share in frequencies)
    return [(shape, share / total) for shape, share in frequencies] or [(A_WHOLE_CARD, 1.0)]


def _live_shapes(live: Mapping[PodRequest, int]) -> dict[Shape, int]:
    shapes: dict[Shape, int] = {}
    for request, count in live.items():
        shape = shape_of(request)
        shapes[shape] = shapes.get(shape, 0) + count
    return shapes


def order_in_class(fleet: Fleet) -> Floats:
    """Where a node stands by name among nodes of its class, 0 to 1: classes of nodes fill in a fixed order."""
    order: Floats = np.zeros(len(fleet.alive), np.float32)
    classes: dict[tuple[int, int, int], list[int]] = {}
    for (kind, cards, cpu, _), rows in node_sorts(fleet).items():
        classes.setdefault((kind, cards, cpu), []).extend(rows)
    for rows in classes.values():
        rows.sort(key=fleet.names.__getitem__)
        order[rows] = np.arange(len(rows), dtype=np.float32) / len(rows)
    return order
