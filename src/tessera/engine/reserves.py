"""Room kept for pods that few places can take.

Shapes that need several cards, or certain models, are grouped by what could hold them. For each group it is counted how
many more copies the cluster could take. Each lost place has a price that rises towards the whole pod as places run out,
against a reserve sized by square-root staffing: a few standard deviations of how many such pods there usually are.
"""

from collections.abc import Mapping

import numpy as np

from tessera.engine.arrays import Doubles, Floats
from tessera.engine.fleet import Fleet
from tessera.engine.landscape import Catalogue
from tessera.engine.mix import Shape
from tessera.model.requests import ANY_CARD

SIGMAS = 4.0
NEGLIGIBLE = 0.01
SHOWN_PART = 0.9  # how much of a group's arrivals the shapes that are counted stand for

Sort = tuple[int, int, int, int]


Groups = list[list[int]]  # positions of shapes in a catalogue


class Reserves:
    def __init__(self, groups: Groups, membership: Floats, amount: Floats, scale: Floats) -> None:
        self._groups = groups
        self.membership = membership  # shapes x groups: the part of each counted shape in its group
        self.amount = amount  # milli-GPU of a usual pod of the group
        self._scale = scale  # places to keep

    @classmethod
    def none(cls) -> "Reserves":
        nothing: Floats = np.zeros(0, np.float32)
        return cls([], np.zeros((0, 0), np.float32), nothing, nothing)

    @classmethod
    def plan(
        cls, fleet: Fleet, catalogue: Catalogue, frequency: Mapping[Shape, float], live: Mapping[Shape, int]
    ) -> "Reserves":
        groups = _group_shapes(fleet, catalogue)
        share = _shares(catalogue, frequency)
        membership = np.zeros((len(catalogue.shapes), len(groups)), np.float32)
        for column, members in enumerate(groups):
            shown = _most_frequent(members, share)
            membership[shown, column] = share[shown] / share[shown].sum()
        return cls(groups, membership, *_staff(groups, fleet, catalogue, share, live))

    def follow(
        self, fleet: Fleet, catalogue: Catalogue, frequency: Mapping[Shape, float], live: Mapping[Shape, int]
    ) -> "Reserves | None":
        """The same groups, sized for the pods of now; None where other nodes have made other groups of them."""
        groups = _group_shapes(fleet, catalogue)
        if groups != self._groups:
            return None
        staffed = _staff(groups, fleet, catalogue, _shares(catalogue, frequency), live)
        return Reserves(groups, self.membership, *staffed)

    def prices(self, copies: Doubles) -> Floats:
        """What losing one place of each group costs, with so many left."""
        scarcity = np.exp(-copies / self._scale)
        return np.where(scarcity < NEGLIGIBLE, 0.0, self.amount * scarcity).astype(np.float32)


def _shares(catalogue: Catalogue, frequency: Mapping[Shape, float]) -> Floats:
    return np.array([frequency.get(shape, 1e-9) for shape in catalogue.shapes], np.float32)


def _staff(
    groups: Groups, fleet: Fleet, catalogue: Catalogue, share: Floats, live: Mapping[Shape, int]
) -> tuple[Floats, Floats]:
    """For each group the size of a usual pod, and how many places to keep for such pods."""
    milli = catalogue.count * catalogue.usual_share * np.float32(10.0)
    mean_milli = float(share @ milli) / max(float(share.sum()), 1e-9)
    pods_when_full = np.count_nonzero(fleet.kind[fleet.alive]) * 1000.0 / max(mean_milli, 1.0)
    amount, scale = np.zeros(len(groups), np.float32), np.ones(len(groups), np.float32)
    for column, members in enumerate(groups):
        arrivals = float(share[members].sum())
        amount[column] = share[members] @ milli[members] / arrivals
        now = sum(live.get(catalogue.shapes[member], 0) for member in members)
        scale[column] = SIGMAS * max(now, arrivals * pods_when_full, 1e-6) ** 0.5
    return amount, scale


def is_special(shape: Shape) -> bool:
    return shape.device is not None and (shape.device.count > 1 or shape.device.selector != ANY_CARD)


def node_sorts(fleet: Fleet) -> dict[Sort, list[int]]:
    """The rows of each sort of node (first card's kind, cards, CPU, memory), by name."""
    sorts: dict[Sort, list[int]] = {}
    cards = np.count_nonzero(fleet.kind, axis=1)
    for row in sorted(map(int, np.flatnonzero(fleet.alive)), key=fleet.names.__getitem__):
        kind = int(fleet.kind[row, 0]) if fleet.width else 0
        sort = kind, int(cards[row]), int(fleet.cpu_total[row]), int(fleet.memory_total[row])
        sorts.setdefault(sort, []).append(row)
    return sorts


def _group_shapes(fleet: Fleet, catalogue: Catalogue) -> Groups:
    """Special shapes that want as many cards, whole or in part, of the same sorts of nodes."""
    sorts = {sort: rows[0] for sort, rows in node_sorts(fleet).items()}
    groups: dict[tuple[object, ...], list[int]] = {}
    for position, shape in enumerate(catalogue.shapes):
        if is_special(shape):
            hosts = _hosts_when_empty(fleet, catalogue, position, sorts)
            whole = bool(catalogue.usual_share[position] >= 100)
            groups.setdefault((float(catalogue.count[position]), whole, hosts), []).append(position)
    return list(groups.values())


def _hosts_when_empty(fleet: Fleet, catalogue: Catalogue, position: int, sorts: Mapping[Sort, int]) -> tuple[int, ...]:
    """Which sorts of nodes could hold the shape if nothing else were on them."""
    shape, hosts = catalogue.shapes[position], list[int]()
    for number, ((_, _, cpu, memory), row) in enumerate(sorts.items()):
        usable = np.count_nonzero(catalogue.share[fleet.kind[row], position])
        if usable >= catalogue.count[position] and cpu >= shape.cpu_milli and memory >= shape.memory_bytes:
            hosts.append(number)
    return tuple(hosts)


def _most_frequent(members: list[int], share: Floats) -> list[int]:
    """The members that most of the group's arrivals are of; the rare ones would cost much and count for little."""
    shares: list[float] = share[members].tolist()
    ranked = sorted(zip(shares, members, strict=True), key=lambda pair: -pair[0])
    shown, reached = list[int](), 0.0
    for part, member in ranked:
        if reached >= SHOWN_PART * sum(shares):
            break
        shown.append(member)
        reached += part
    return shown
