"""Room kept for pods that few places can take.

Shapes that need several cards, or certain models, are grouped by what could hold them. For each group it is counted how
many places the cluster has left. Each lost place has a price that rises towards the whole pod as places run out,
against a reserve sized by square-root staffing: a few standard deviations of how many such pods there usually are.
"""

from collections.abc import Mapping

import numpy as np

from tessera.engine.arrays import Doubles, Floats, Rows, contract
from tessera.engine.fleet import Fleet
from tessera.engine.landscape import ShapeTable
from tessera.engine.mix import Shape
from tessera.model.requests import ANY_CARD

SIGMAS = 4.0
NEGLIGIBLE = 0.01
SHOWN_PART = 0.9  # how much of a group's arrivals the shapes that are counted stand for

Sort = tuple[int, int, int, int]


Hosts = tuple[int, ...]  # sorts of nodes, by number
Groups = dict[tuple[float, bool, Hosts], list[int]]  # cards, whole or in part, hosts: positions of shapes in the table


class Reserves:
    """`membership` is shapes x groups: the part of each counted shape in its group.

    `concerned` is rows x few: the groups that could be on a row when it is empty, and beyond them the number of groups.
    Only those can lose a place there, so only those need to be remembered for it.
    """

    def __init__(self, groups: Groups, concerned: Rows, membership: Floats, amount: Floats, scale: Floats) -> None:
        self._groups = groups
        self.concerned = concerned
        self.membership = membership
        self._amount = amount  # milli-GPU of a usual pod of the group
        self._scale = scale  # places to keep

    @classmethod
    def none(cls) -> "Reserves":
        nothing: Floats = np.zeros(0, np.float32)
        return cls({}, np.zeros((0, 0), np.intp), np.zeros((0, 0), np.float32), nothing, nothing)

    @classmethod
    def plan(
        cls, fleet: Fleet, table: ShapeTable, frequency: Mapping[Shape, float], live: Mapping[Shape, int]
    ) -> "Reserves":
        groups = _group_shapes(fleet, table)
        share = _shares(table, frequency)
        membership = np.zeros((len(table.shapes), len(groups)), np.float32)
        for column, members in enumerate(groups.values()):
            shown = _most_frequent(members, share)
            membership[shown, column] = share[shown] / share[shown].sum()
        return cls(groups, _concerned(fleet, groups), membership, *_staff(groups, fleet, table, share, live))

    def follow(
        self, fleet: Fleet, table: ShapeTable, frequency: Mapping[Shape, float], live: Mapping[Shape, int]
    ) -> "Reserves | None":
        """The same groups, sized for the pods of now; None where other nodes have made other groups of them."""
        groups = _group_shapes(fleet, table)
        if groups != self._groups:
            return None
        staffed = _staff(groups, fleet, table, _shares(table, frequency), live)
        return Reserves(groups, self.concerned, self.membership, *staffed)

    def prices(self, places_left: Doubles) -> Floats:
        """What losing one place of each group costs, with so many left."""
        scarcity = np.exp(-places_left / self._scale)
        return np.where(scarcity < NEGLIGIBLE, 0.0, self._amount * scarcity).astype(np.float32)

    def of_rows(self, rows: Rows, per_group: Floats) -> Floats:
        """Of figures per row and group, those of the groups that concern each row."""
        padded = np.concatenate([per_group, np.zeros((len(per_group), 1), np.float32)], axis=1)
        return np.take_along_axis(padded, self.concerned[rows], axis=1)

    def cost(self, lost: Floats, places_left: Doubles) -> Floats | None:
        """What each row's lost places cost, from `of_rows` for all rows; None while there are plenty of all."""
        prices = self.prices(places_left)
        if not prices.any():
            return None
        return contract("rg,rg->r", lost, np.append(prices, np.float32(0))[self.concerned])


def _shares(table: ShapeTable, frequency: Mapping[Shape, float]) -> Floats:
    return np.array([frequency.get(shape, 1e-9) for shape in table.shapes], np.float32)


def _staff(
    groups: Groups, fleet: Fleet, table: ShapeTable, share: Floats, live: Mapping[Shape, int]
) -> tuple[Floats, Floats]:
    """For each group the size of a usual pod, and how many places to keep for such pods."""
    milli = table.count * table.usual_share * np.float32(10.0)
    mean_milli = float((share * milli).sum()) / max(float(share.sum()), 1e-9)
    pods_when_full = np.count_nonzero(fleet.kind[fleet.alive]) * 1000.0 / max(mean_milli, 1.0)
    amount, scale = np.zeros(len(groups), np.float32), np.ones(len(groups), np.float32)
    for column, members in enumerate(groups.values()):
        arrivals = float(share[members].sum())
        amount[column] = (share[members] * milli[members]).sum() / arrivals
        now = sum(live.get(table.shapes[member], 0) for member in members)
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


def _group_shapes(fleet: Fleet, table: ShapeTable) -> Groups:
    """Special shapes that want as many cards, whole or in part, of the same sorts of nodes."""
    sorts = {sort: rows[0] for sort, rows in node_sorts(fleet).items()}
    groups: Groups = {}
    for position, shape in enumerate(table.shapes):
        if is_special(shape):
            hosts = _hosts_when_empty(fleet, table, position, sorts)
            whole = bool(table.usual_share[position] >= 100)
            groups.setdefault((float(table.count[position]), whole, hosts), []).append(position)
    return groups


def _concerned(fleet: Fleet, groups: Groups) -> Rows:
    sorts = list(node_sorts(fleet).values())
    of_sort = [[column for column, (_, _, hosts) in enumerate(groups) if sort in hosts] for sort in range(len(sorts))]
    widest = max((len(columns) for columns in of_sort), default=0)
    concerned = np.full((len(fleet.alive), widest), len(groups), np.intp)
    for rows, columns in zip(sorts, of_sort, strict=True):
        concerned[rows, : len(columns)] = columns
    return concerned


def _hosts_when_empty(fleet: Fleet, table: ShapeTable, position: int, sorts: Mapping[Sort, int]) -> Hosts:
    """Which sorts of nodes could hold the shape if nothing else were on them."""
    shape, hosts = table.shapes[position], list[int]()
    for number, ((_, _, cpu, memory), row) in enumerate(sorts.items()):
        usable = np.count_nonzero(table.share[fleet.kind[row], position])
        if usable >= table.count[position] and cpu >= shape.cpu_milli and memory >= shape.memory_bytes:
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
