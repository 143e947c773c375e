"""Why a node cannot take a pod: the first thing in the way, and by how much.

Reasons are worked out for all refused rows at once, in a fixed order from the host to the card, so the same state gives
the same words. For a shortage on cards the figure is the nearest miss: the best that as many cards as wanted could do.
"""

from collections.abc import Callable

import numpy as np

from tessera.engine.arrays import Bools, Ints, Longs, Rows
from tessera.engine.demand import Demand, Demands
from tessera.engine.fleet import Fleet
from tessera.engine.hosting import refuse_host
from tessera.engine.policy import CardPolicy
from tessera.engine.trial import Cards, accepted_uuids
from tessera.model.refusals import Reason, Refusal
from tessera.model.requests import PodRequest


def explain(request: PodRequest, fleet: Fleet, rows: Rows, *, demands: Demands, policy: CardPolicy) -> list[Refusal]:
    """One refusal for each of these rows, which are known not to fit."""
    cards = Cards(fleet, rows, request.host)
    found: list[Refusal | None] = [_refuse_host(request, fleet, int(row)) for row in rows]
    wanted = dict.fromkeys(device for container in request.containers for device in container.devices)
    for device in sorted(wanted, key=lambda device: (device.vendor, -device.count)):
        open_positions = np.array([position for position, refusal in enumerate(found) if refusal is None], np.intp)
        if len(open_positions):
            for position, refusal in _refuse_cards(demands.of(device), cards.part(open_positions), policy):
                found[open_positions[position]] = refusal
    together = (Refusal(Reason.CARDS_TOGETHER, where=fleet.names[int(row)]) for row in rows)
    return [refusal or fallback for refusal, fallback in zip(found, together, strict=True)]


def _refuse_host(request: PodRequest, fleet: Fleet, row: int) -> Refusal | None:
    name, host = fleet.names[row], request.host
    refusal = refuse_host(host, fleet.hosts[row], name)
    if refusal is not None:
        return refusal
    if host.cpu_milli and host.cpu_milli > fleet.cpu_free[row]:
        return Refusal(Reason.HOST_CPU, need=host.cpu_milli, have=max(int(fleet.cpu_free[row]), 0), where=name)
    if host.memory_bytes and host.memory_bytes > fleet.memory_free[row]:
        return Refusal(Reason.HOST_MEMORY, need=host.memory_bytes, have=max(int(fleet.memory_free[row]), 0), where=name)
    if fleet.pods_free[row] < 1:
        return Refusal(Reason.HOST_PODS, need=fleet.hosts[row].pods, have=0, where=name)
    return None


class _Stages:
    """Takes away cards stage by stage and notes for each row the stage at which too few were left."""

    def __init__(self, demand: Demand, cards: Cards) -> None:
        self._demand = demand
        self._cards = cards
        self._left: Bools = demand.of_vendor[cards.kind]
        self.found: dict[int, Refusal] = {}

    def require(self, passing: Bools, refuse: Callable[[int, int], Refusal]) -> None:
        """`refuse` gets the position and how many cards are left with this stage."""
        self._left = self._left & passing
        counts = np.count_nonzero(self._left, axis=1)
        for position in np.flatnonzero(counts < self._demand.request.count):
            if int(position) not in self.found:
                self.found[int(position)] = refuse(int(position), int(counts[position]))

    def require_amount(self, free: Ints, need: Ints, reason: Reason) -> None:
        """At least `need` of something that cards have; the refusal tells of the last card that would have to give."""
        count = self._demand.request.count
        missing = np.where(self._left, need.astype(np.int64) - free, np.iinfo(np.int64).max)
        nearest = np.argsort(missing, axis=1, kind="stable")[:, count - 1 : count]

        def refuse(position: int, _: int) -> Refusal:
            card = position, int(nearest[position, 0])
            return Refusal(reason, int(need[card]), max(int(free[card]), 0), self.where(position), cards=count)

        self.require(free >= need, refuse)

    def count_left(self, among: Bools) -> Longs:
        """How many of these cards have passed every stage so far, per row."""
        return np.count_nonzero(self._left & among, axis=1)

    def where(self, position: int) -> str:
        return self._cards.fleet.names[int(self._cards.rows[position])]

    def counting(self, reason: Reason, detail: str = "") -> Callable[[int, int], Refusal]:
        count = self._demand.request.count
        return lambda position, left: Refusal(reason, count, left, self.where(position), detail, count)


def _refuse_cards(demand: Demand, cards: Cards, policy: CardPolicy) -> list[tuple[int, Refusal]]:
    fleet, kind, request = cards.fleet, cards.kind, demand.request
    stages, everything = _Stages(demand, cards), np.ones(kind.shape, np.bool_)
    stages.require(everything, _missing(stages, demand))
    stages.require(demand.type_matches[kind], stages.counting(Reason.CARD_TYPE))
    stages.require(demand.mode_matches[kind], stages.counting(Reason.CARD_MODE))
    if request.selector.use_uuids or request.selector.avoid_uuids:
        stages.require(accepted_uuids(demand, cards), stages.counting(Reason.CARD_UUID))
    stages.require(fleet.healthy[cards.rows], stages.counting(Reason.CARD_UNHEALTHY))
    stages.require(~fleet.cordoned[cards.rows], stages.counting(Reason.CARD_CORDONED))
    if policy.idle_only:
        stages.require(cards.idle(), stages.counting(Reason.CARD_EXCLUSIVE))
    elif request.cores_percent:
        stages.require(cards.idle() | ~demand.exclusive[kind], stages.counting(Reason.CARD_EXCLUSIVE))
    stages.require(cards.free_slots > 0, stages.counting(Reason.CARD_SLOTS))
    stages.require_amount(cards.free_memory, demand.memory[kind], Reason.CARD_MEMORY)
    cores = np.full(kind.shape, max(request.cores_percent, 1), np.int32)
    stages.require_amount(cards.free_cores, cores, Reason.CARD_CORES)
    if request.selector.same_numa and request.count > 1:
        _require_one_numa(stages, demand, cards)
    return list(stages.found.items())


def _missing(stages: _Stages, demand: Demand) -> Callable[[int, int], Refusal]:
    some = stages.counting(Reason.TOO_FEW_CARDS)
    none = stages.counting(Reason.NO_CARDS, demand.request.vendor)
    return lambda position, left: some(position, left) if left else none(position, left)


def _require_one_numa(stages: _Stages, demand: Demand, cards: Cards) -> None:
    numa = cards.fleet.numa[cards.rows]
    most = np.zeros(len(numa), np.int64)
    for node in np.unique(numa):
        most = np.maximum(most, stages.count_left(numa == node))
    enough = most >= demand.request.count
    refuse = stages.counting(Reason.CARD_NUMA)
    stages.require(
        np.broadcast_to(enough[:, None], numa.shape), lambda position, _: refuse(position, int(most[position]))
    )
