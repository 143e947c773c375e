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
from tessera.engine.landscape import Appraisal, Catalogue, Landscape, card_states, share_per_kind
from tessera.engine.mix import A_WHOLE_CARD, Mix, Shape, most_typical, shape_of
from tessera.engine.policy import CardPolicy, NodePolicy
from tessera.engine.trial import Cards, Trial
from tessera.model.requests import ANY_CARD, DeviceRequest, PodRequest

APPRAISAL = Appraisal(useful=0.4, lost=0.6)
GAP_WEIGHT = 8000.0
ORDER_WEIGHT = 100.0
TIE_WIDTH = 50.0
RESERVE_SIGMAS = 4.0
NEGLIGIBLE = 0.01
REVIEW_EVERY = 500
DRIFT = 0.05
MAX_GROUP_SHAPES = 256
MAX_PREFERENCES = 1024


class Defrag(NodePolicy, CardPolicy):
    """One object is both policies: the cards and the node are chosen with the same tables."""

    def __init__(self, fleet: Fleet, live: Mapping[PodRequest, int], mix: Mix | None = None) -> None:
        self._fleet = fleet
        self._live = live
        self._mix = mix or Mix()
        self._landscape: Landscape | None = None
        self._reserves = _Reserves.none()
        self._order: Floats = np.zeros(0, np.float32)
        self._preferences: dict[DeviceRequest, Doubles] = {}
        self._review_at = 1
        self._fitted: dict[Shape, float] = {}
        self._epoch = 0

    @property
    def figures(self) -> int:
        return 1 + len(self._reserves.amount)

    @property
    def epoch(self) -> int:
        self._current()
        return self._epoch

    def observe(self, request: PodRequest) -> None:
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
        value, copies = landscape.appraise(sums, after)
        gap = landscape.gap_worth(sums) - landscape.gap_worth(landscape.sums[rows])
        gained = value - landscape.value[rows] + np.float32(GAP_WEIGHT) * gap
        figures[fitting, 0] = gained - np.float32(ORDER_WEIGHT) * self._order[rows]
        figures[fitting, 1:] = landscape.copies[rows] - copies
        return figures

    def settle(self, figures: Floats, request: PodRequest) -> Floats:  # noqa: ARG002
        score, price = figures[:, 0], self._reserves.prices(self._current().total_copies)
        dear = price.nonzero()[0]
        if len(dear):
            score = score - figures[:, 1 + dear] @ price[dear]
        return np.floor(score / np.float32(TIE_WIDTH))

    def _review(self) -> None:
        """Fit again if the mix or the nodes have moved; if not, let the reserves follow the pods that are live now."""
        fleet, landscape, frequencies = self._fleet, self._landscape, _with_cards(self._mix)
        moved = sum(abs(share - self._fitted.get(shape, 0.0)) for shape, share in frequencies)
        self._landscape = None
        if landscape is None or landscape.layout != fleet.layout or moved > DRIFT:
            return
        reserves = _Reserves.plan(fleet, landscape.catalogue, dict(frequencies), _live_shapes(self._live))
        if reserves.has_groups_of(self._reserves) and np.array_equal(order_in_class(fleet), self._order):
            self._landscape, self._reserves = landscape, reserves

    def _current(self) -> Landscape:
        if self._landscape is None or self._landscape.layout != self._fleet.layout:
            self._landscape = self._fit()
            self._preferences.clear()
            self._epoch += 1
        self._landscape.refresh()
        return self._landscape

    def _fit(self) -> Landscape:
        fleet = self._fleet
        frequencies = _with_cards(self._mix)
        self._fitted = dict(frequencies)
        typical = most_typical(frequencies)
        special = [(shape, share) for shape, share in frequencies if is_special(shape)][:MAX_GROUP_SHAPES]
        shapes = list(dict.fromkeys(shape for shape, _ in [*typical, *special]))
        weight = dict(typical)
        catalogue = Catalogue(fleet, shapes, [weight.get(shape, 0.0) for shape in shapes], by_card=True)
        self._order = order_in_class(fleet)
        self._reserves = _Reserves.plan(fleet, catalogue, self._fitted, _live_shapes(self._live))
        return Landscape(fleet, catalogue, self._reserves.membership, APPRAISAL)


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


class _Reserves:
    """Groups of shapes that few places can take, and what losing one of those places costs."""

    def __init__(self, membership: Floats, amount: Floats, scale: Floats) -> None:
        self.membership = membership  # shapes x groups: the part of each shape in its group
        self.amount = amount  # milli-GPU of a usual pod of the group
        self._scale = scale  # places to keep, by square-root staffing

    @classmethod
    def none(cls) -> "_Reserves":
        nothing: Floats = np.zeros(0, np.float32)
        return cls(np.zeros((0, 0), np.float32), nothing, nothing)

    @classmethod
    def plan(
        cls, fleet: Fleet, catalogue: Catalogue, frequency: Mapping[Shape, float], live: Mapping[Shape, int]
    ) -> "_Reserves":
        groups = _group_shapes(fleet, catalogue)
        share = np.array([frequency.get(shape, 1e-9) for shape in catalogue.shapes], np.float32)
        milli = catalogue.count * catalogue.usual_share * np.float32(10.0)
        mean_milli = float(share @ milli) / max(float(share.sum()), 1e-9)
        cards = np.count_nonzero(fleet.kind[fleet.alive])
        pods_when_full = cards * 1000.0 / max(mean_milli, 1.0)
        membership = np.zeros((len(catalogue.shapes), len(groups)), np.float32)
        amount, scale = np.zeros(len(groups), np.float32), np.ones(len(groups), np.float32)
        for column, members in enumerate(groups):
            part = share[members] / share[members].sum()
            membership[members, column] = part
            amount[column] = part @ milli[members]
            now = sum(live.get(catalogue.shapes[member], 0) for member in members)
            usual = max(now, float(share[members].sum()) * pods_when_full)
            scale[column] = RESERVE_SIGMAS * max(usual, 1e-6) ** 0.5
        return cls(membership, amount, scale)

    def has_groups_of(self, other: "_Reserves") -> bool:
        return np.array_equal(self.membership > 0, other.membership > 0)

    def prices(self, copies: Doubles) -> Floats:
        scarcity = np.exp(-copies / self._scale)
        return np.where(scarcity < NEGLIGIBLE, 0.0, self.amount * scarcity).astype(np.float32)


def is_special(shape: Shape) -> bool:
    return shape.device is not None and (shape.device.count > 1 or shape.device.selector != ANY_CARD)


def _group_shapes(fleet: Fleet, catalogue: Catalogue) -> list[list[int]]:
    """Special shapes that want as many cards, whole or in part, of the same sort of nodes."""
    classes = _node_classes(fleet)
    groups: dict[tuple[object, ...], list[int]] = {}
    for position, shape in enumerate(catalogue.shapes):
        if is_special(shape):
            hosts = _hosts_when_empty(fleet, catalogue, position, classes)
            whole = bool(catalogue.usual_share[position] >= 100)
            groups.setdefault((float(catalogue.count[position]), whole, hosts), []).append(position)
    return list(groups.values())


def _node_classes(fleet: Fleet) -> dict[tuple[int, int, int, int], int]:
    """Each distinct sort of node (first card's kind, cards, CPU, memory) and a row that shows it."""
    classes: dict[tuple[int, int, int, int], int] = {}
    cards = np.count_nonzero(fleet.kind, axis=1)
    for row in np.flatnonzero(fleet.alive):
        kind = int(fleet.kind[row, 0]) if fleet.width else 0
        classes.setdefault((kind, int(cards[row]), int(fleet.cpu_total[row]), int(fleet.memory_total[row])), int(row))
    return classes


def _hosts_when_empty(
    fleet: Fleet, catalogue: Catalogue, position: int, classes: Mapping[tuple[int, int, int, int], int]
) -> tuple[int, ...]:
    shape, hosts = catalogue.shapes[position], list[int]()
    for number, ((_, _, cpu, memory), row) in enumerate(classes.items()):
        usable = np.count_nonzero(catalogue.share[fleet.kind[row], position])
        if usable >= catalogue.count[position] and cpu >= shape.cpu_milli and memory >= shape.memory_bytes:
            hosts.append(number)
    return tuple(hosts)


def order_in_class(fleet: Fleet) -> Floats:
    """Where a node stands by name among nodes of its sort, 0 to 1: sorts of nodes fill in a fixed order."""
    order: Floats = np.zeros(len(fleet.alive), np.float32)
    members: dict[tuple[int, int, int], list[int]] = {}
    cards = np.count_nonzero(fleet.kind, axis=1)
    for row in sorted(np.flatnonzero(fleet.alive), key=lambda row: fleet.names[row]):
        kind = int(fleet.kind[row, 0]) if fleet.width else 0
        members.setdefault((kind, int(cards[row]), int(fleet.cpu_total[row])), []).append(int(row))
    for rows in members.values():
        order[rows] = np.arange(len(rows), dtype=np.float32) / len(rows)
    return order
