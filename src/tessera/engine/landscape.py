"""How useful the idle part of every node is to the pods that usually come.

For each card state (kind and free share in percent) and each typical shape a table knows how many copies fit and how
much of the card would be lost to it. A node is the sum of its cards' table rows, kept per node and corrected when the
node changes; a placement is tried by swapping a few table rows. See docs/policies.md for the formulas.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import astuple

from tessera.engine.arrays import Bools, Doubles, Floats, Ints, Longs, Rows, contract
from tessera.engine.cutting import WHOLE, price_gaps
from tessera.engine.demand import Demand
from tessera.engine.fleet import Fleet
from tessera.engine.mix import Shape
from tessera.engine.trial import Cards

MILLI_PER_PERCENT = 10.0
STATES = WHOLE + 1
_STATES, _PERCENT = np.int32(STATES), np.int32(WHOLE)


class Appraisal(NamedTuple):
    """What counts for a node: its use to the typical shapes, its loss to them, and idle share that none can use."""

    useful: float
    lost: float
    unusable: float = 0.0


class ShapeTable:
    """The typical shapes as columns: what each takes of a card of each kind and of the host.

    `weights` say how often each shape comes. With `by_card` a shape counts by how many of it a card could hold, and
    the counts add up to one.
    """

    def __init__(self, fleet: Fleet, shapes: Sequence[Shape], weights: Sequence[float], *, by_card: bool) -> None:
        devices = [shape.device for shape in shapes]
        self.shapes: list[Shape] = list(shapes)
        self.share = np.stack(
            [share_per_kind(Demand(device, fleet.kinds), fleet) for device in devices if device], axis=1
        ).astype(np.float32)
        self.count: Floats = np.array([device.count for device in devices if device], np.float32)
        self.cpu: Floats = np.maximum(np.array([shape.cpu_milli for shape in shapes], np.float32), 1.0)
        self.memory: Floats = np.maximum(np.array([shape.memory_bytes for shape in shapes], np.float32), 1.0)
        common = self.share[_kinds_by_number(fleet)]
        self.usual_share: Floats = common[(common > 0).argmax(axis=0), np.arange(len(shapes))]
        self.frequency: Floats = np.array(weights, np.float32)
        self.weight: Floats = self.frequency
        if by_card:
            weight = self.frequency * (self.usual_share > 0) * WHOLE / np.maximum(self.usual_share, 1.0)
            self.weight = (weight / max(float(weight.sum()), 1e-12)).astype(np.float32)
        self.amount: Floats = self.count * self.share * np.float32(MILLI_PER_PERCENT)

    def part(self, positions: Rows) -> "ShapeTable":
        """The same figures for some of the shapes."""
        other = object.__new__(ShapeTable)
        other.shapes = [self.shapes[position] for position in positions.tolist()]
        other.share, other.amount = self.share[:, positions], self.amount[:, positions]
        for name in ("count", "cpu", "memory", "usual_share", "frequency", "weight"):
            setattr(other, name, getattr(self, name)[positions])
        return other


def share_per_kind(demand: Demand, fleet: Fleet) -> Ints:
    """The percent of a card that the request takes, per kind; zero where the kind will not do."""
    memory = -(-demand.memory.astype(np.int64) * WHOLE // np.maximum(fleet.kind_memory, 1))
    cores = -(-np.int64(demand.request.cores_percent) * WHOLE // np.maximum(fleet.kind_cores, 1))
    slot = -(-WHOLE // np.maximum(fleet.kind_slots, 1).astype(np.int64))
    share = np.where((memory > 0) | (cores > 0), np.maximum(memory, cores), slot)
    return np.where(demand.usable & (share <= WHOLE), share, 0).astype(np.int32)


def card_states(cards: Cards) -> Ints:
    """Each card's row in the tables: its kind and the percent of it still to be had, whichever figure is scarcer."""
    fleet, kind = cards.fleet, cards.kind
    memory = np.maximum(cards.free_memory, 0) * _PERCENT // fleet.kind_memory[kind]
    cores = np.maximum(cards.free_cores, 0) * _PERCENT // fleet.kind_cores[kind]
    share = np.minimum(memory, cores)
    return kind * _STATES + share * (cards.usable & (cards.free_slots > 0))


class Landscape:
    """The tables for one catalogue of shapes, and their sums over every node of the fleet."""

    def __init__(self, fleet: Fleet, catalogue: ShapeTable, groups: Floats, appraisal: Appraisal) -> None:
        """`groups` maps shapes (rows) to the groups whose remaining places are counted (columns)."""
        self.fleet = fleet
        self._appraisal = appraisal
        self.catalogue = catalogue
        self.layout = fleet.layout
        self._shapes = len(catalogue.shapes)
        self._typical = int(np.flatnonzero(catalogue.weight).max(initial=-1)) + 1
        shape, group = groups.nonzero()
        by_group = np.argsort(group, kind="stable")
        self._in_group: Rows = shape[by_group]
        self._part: Floats = groups[shape, group][by_group]
        self._starts: Rows = np.flatnonzero(np.diff(group[by_group], prepend=-1))
        self._weight: Floats = catalogue.weight[: self._typical]
        self._worth: Floats = (catalogue.weight * catalogue.amount)[:, : self._typical]
        self.gap_price = gap_prices(catalogue)
        self.table: Floats = _card_table(catalogue, self.gap_price, self._typical)
        rows = len(fleet.alive)
        self.sums: Floats = np.zeros((rows, self.table.shape[1]), np.float32)
        self.value: Floats = np.zeros(rows, np.float32)
        self.places: Floats = np.zeros((rows, groups.shape[1]), np.float32)
        self.places_left: Doubles = np.zeros(groups.shape[1])
        self._whole: Floats = np.zeros((rows, groups.shape[1]), np.float32)
        self.states: Ints = np.zeros(fleet.kind.shape, np.int32)
        self.node_kind: Ints = np.zeros(rows, np.int32)
        self._seen = -1
        self.refresh()

    def refresh(self) -> None:
        """Look again at the nodes that changed."""
        fleet = self.fleet
        if fleet.sequence == self._seen:
            return
        rows = (fleet.changed_at > self._seen).nonzero()[0]
        self._seen = fleet.sequence
        cards = Cards(fleet, rows)
        self.node_kind[rows] = cards.kind[:, 0] if fleet.width else 0
        states = card_states(cards)
        sums = np.zeros((len(rows), self.table.shape[1]), np.float32)
        for column in range(states.shape[1]):
            sums += self.table[states[:, column]]
        self.states[rows] = states
        self.sums[rows] = sums
        self.value[rows], room = self.appraise(sums, cards)
        whole = self.whole_places(room)
        self.places_left += (whole - self._whole[rows]).sum(axis=0, dtype=np.float64)
        self._whole[rows] = whole
        self.places[rows] = self.near_places(room)

    def after(self, rows: Rows, after: Ints) -> Floats:
        """The sums of these rows once their cards are in these states."""
        before, sums = self.states[rows], self.sums[rows]
        row, column = (before != after).nonzero()
        swap = self.table[after[row, column]] - self.table[before[row, column]]
        if len(row) and (row[1:] == row[:-1]).any():
            np.add.at(sums, row, swap)
        else:
            sums[row] += swap
        return sums

    def appraise(self, sums: Floats, cards: Cards) -> tuple[Floats, Floats]:
        """The use minus the loss of each row in milli-GPU, and its room for each shape that is in a group."""
        shapes, typical, counts = self._shapes, self._typical, self._appraisal
        host = [np.maximum(free, 0).astype(np.float32) for free in (cards.cpu_free, cards.memory_free)]
        by_cards = sums[:, :shapes] / self.catalogue.count
        by_cpu, by_memory = host[0][:, None] / self.catalogue.cpu, host[1][:, None] / self.catalogue.memory
        room = np.minimum(np.minimum(by_cards, by_cpu), by_memory)
        fits = room[:, :typical] >= 1.0
        lost = contract("dp,p->d", np.where(fits, sums[:, shapes:-2], sums[:, -2, None]), self._weight)
        value: Floats = (-counts.lost * lost - counts.unusable * sums[:, -2]).astype(np.float32)
        if counts.useful:
            copies = np.floor(by_cards[:, :typical])
            both = np.minimum(copies, by_cpu[:, :typical]) * np.minimum(copies, by_memory[:, :typical])
            useful = both * fits / np.maximum(copies, 1.0)
            gained = contract("dp,dp->d", useful, self._worth[self.node_kind[cards.rows]])
            value = value + np.float32(counts.useful) * gained
        return value, room[:, self._in_group]

    def whole_places(self, room: Floats) -> Floats:
        """How many copies of each group fit."""
        return self._by_group(np.floor(room))

    def near_places(self, room: Floats) -> Floats:
        """The same, where a place that lacks something counts too, by the fourth power of what is there.

        So a node that is nearly empty is left to become empty, and room for large pods comes back once it was lost.
        """
        whole = np.floor(room)
        squared = np.square(room - whole)
        return self._by_group(whole + np.square(squared))

    def _by_group(self, per_shape: Floats) -> Floats:
        """Sums within groups, not products of matrices: those may differ with how many rows are looked at together."""
        if not len(self._starts):
            return np.zeros((len(per_shape), 0), np.float32)
        return np.add.reduceat(per_shape * self._part, self._starts, axis=1)

    def gap_worth(self, sums: Floats) -> Floats:
        return sums[:, -1]

    def card_preference(self, share: Ints, gap_weight: float) -> Doubles:
        """For each card state, how good it is to cut `share` (per kind) out of it, host limits apart."""
        before = np.arange(len(self.table))
        kind = before // STATES
        after = before - np.minimum(share[kind], before % STATES)  # shares are rounded up, what is free down
        change = (self.table[after] - self.table[before]).astype(np.float64)
        typical = change[:, : self._typical] / self.catalogue.count[: self._typical]
        useful = contract("sp,sp->s", typical, self._worth[kind])
        lost = contract("sp,p->s", change[:, self._shapes : -2], self._weight)
        return self._appraisal.useful * useful - self._appraisal.lost * lost + gap_weight * change[:, -1]


def _card_table(catalogue: ShapeTable, gap_price: Doubles, typical: int) -> Floats:
    """One row per card state: copies of each shape, milli lost to each typical one, idle milli, worth of the gap."""
    kinds, shapes = catalogue.share.shape
    free = np.arange(STATES, dtype=np.float32)
    table = np.zeros((kinds, STATES, shapes + typical + 2), np.float32)
    for kind in range(1, kinds):
        share = catalogue.share[kind]
        usable = share > 0
        table[kind, :, :shapes] = np.where(usable, np.floor(free[:, None] / np.where(usable, share, 1.0)), 0.0)
        stranded = ~usable | (free[:, None] < share)
        table[kind, :, shapes:-2] = stranded[:, :typical] * free[:, None] * MILLI_PER_PERCENT
        table[kind, :, -2] = free * MILLI_PER_PERCENT
        table[kind, :, -1] = gap_price[kind]
    return table.reshape(kinds * STATES, -1)


def gap_prices(catalogue: ShapeTable) -> Doubles:
    """The worth of a gap on a card of each kind; kinds on which the shapes take the same share are priced once."""
    fractional = (catalogue.count == 1) & (catalogue.weight > 0)
    prices = np.zeros((len(catalogue.share), STATES))
    known: dict[bytes, Doubles] = {}
    for kind, shares in enumerate(catalogue.share):
        key = shares.tobytes()
        if key not in known:
            known[key] = _price_kind(shares, fractional & (shares > 0) & (shares < WHOLE), catalogue)
        prices[kind] = known[key]
    return prices


def _price_kind(shares: Floats, fractional: Bools, catalogue: ShapeTable) -> Doubles:
    wanted: dict[int, float] = {}
    for position in np.flatnonzero(fractional):
        size = int(shares[position])
        wanted[size] = wanted.get(size, 0.0) + float(catalogue.frequency[position])
    sizes = sorted(wanted)
    return price_gaps(sizes, [wanted[size] for size in sizes])


def _kinds_by_number(fleet: Fleet) -> Longs:
    """The kind of most cards first, "no card" last; what decides between equals must not be who came first."""
    counts = np.bincount(fleet.kind[fleet.alive].ravel(), minlength=len(fleet.kinds))
    counts[0] = -1
    return np.array(sorted(range(len(counts)), key=lambda kind: (-counts[kind], astuple(fleet.kinds[kind]))))
