"""Why a node cannot take a pod: the first thing in the way, and by how much.

Reasons are worked out for all refused rows at once, in a fixed order from the host to the card, so the same state gives
the same words. For a shortage on cards the figure is the nearest miss: the best that as many cards as wanted could do.
What a claim asks of its cards together comes after what it asks of each.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tessera.engine.arrays import Bools, Ints, Longs, Rows
from tessera.engine.demand import Demand, Demands
from tessera.engine.fleet import Fleet
from tessera.engine.hosting import refuse_host
from tessera.engine.lineup import Lineup, are_among, line_up, runs_in, topology_of
from tessera.engine.policy import CardPolicy
from tessera.engine.trial import Cards, accepted_uuids, eligible_cards
from tessera.model.refusals import Reason, Refusal
from tessera.model.requests import ClaimPolicy, ClaimRequest, PodRequest, TopologyMode


def explain(request: PodRequest, fleet: Fleet, rows: Rows, *, demands: Demands, policy: CardPolicy) -> list[Refusal]:
    """One refusal for each of these rows, which are known not to fit."""
    cards = Cards(fleet, rows, request.host)
    found: list[Refusal | None] = [_refuse_host(request, fleet, int(row)) for row in rows]
    for refuse in _questions(request, demands, policy):
        open_positions = np.array([position for position, refusal in enumerate(found) if refusal is None], np.intp)
        if len(open_positions):
            for position, refusal in refuse(cards.part(open_positions)).items():
                found[open_positions[position]] = refusal
    together = (Refusal(Reason.CARDS_TOGETHER, where=fleet.names[int(row)]) for row in rows)
    return [refusal or fallback for refusal, fallback in zip(found, together, strict=True)]


def _questions(
    request: PodRequest, demands: Demands, policy: CardPolicy
) -> Iterator[Callable[[Cards], dict[int, Refusal]]]:
    """What to ask of cards, one after the other: the claim, and then what containers want."""
    claim = request.claim
    if claim is not None:
        yield lambda cards: _refuse_claim(claim, demands.of_claim(claim), cards)
    wanted = dict.fromkeys(device for container in request.containers for device in container.devices)
    for device in sorted(wanted, key=lambda device: (device.vendor, -device.count)):
        demand = demands.of(device)
        yield lambda cards, demand=demand: _refuse_cards(demand, cards, idle_only=policy.idle_only).found


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
        self.left: Bools = demand.of_vendor[cards.kind]
        self.found: dict[int, Refusal] = {}

    def require(self, passing: Bools, refuse: Callable[[int, int], Refusal]) -> None:
        """`refuse` gets the position and how many cards are left with this stage."""
        self.left = self.left & passing
        counts = np.count_nonzero(self.left, axis=1)
        for position in np.flatnonzero(counts < self._demand.request.count):
            if int(position) not in self.found:
                self.found[int(position)] = refuse(int(position), int(counts[position]))

    def require_amount(self, free: Ints, need: Ints, reason: Reason) -> None:
        """At least `need` of something that cards have; the refusal tells of the last card that would have to give."""
        count = self._demand.request.count
        missing = np.where(self.left, need.astype(np.int64) - free, np.iinfo(np.int64).max)
        nearest = np.argsort(missing, axis=1, kind="stable")[:, count - 1 : count]

        def refuse(position: int, _: int) -> Refusal:
            card = position, int(nearest[position, 0])
            return Refusal(reason, int(need[card]), max(int(free[card]), 0), self.where(position), cards=count)

        self.require(free >= need, refuse)

    def require_rows(self, enough: Bools, refuse: Callable[[int], Refusal]) -> None:
        """Something that the cards of a row meet together or not at all."""
        self.require(np.broadcast_to(enough[:, None], self.left.shape), lambda position, _: refuse(position))

    def count_left(self, among: Bools) -> Longs:
        """How many of these cards have passed every stage so far, per row."""
        return np.count_nonzero(self.left & among, axis=1)

    def where(self, position: int) -> str:
        return self._cards.fleet.names[int(self._cards.rows[position])]

    def counting(self, reason: Reason, detail: str = "") -> Callable[[int, int], Refusal]:
        count = self._demand.request.count
        return lambda position, left: Refusal(reason, count, left, self.where(position), detail, count)


def _refuse_cards(demand: Demand, cards: Cards, *, idle_only: bool) -> _Stages:
    fleet, kind, request = cards.fleet, cards.kind, demand.request
    stages, everything = _Stages(demand, cards), np.ones(kind.shape, np.bool_)
    stages.require(everything, _missing(stages, demand))
    stages.require(demand.type_matches[kind], stages.counting(Reason.CARD_TYPE))
    stages.require(demand.mode_matches[kind], stages.counting(Reason.CARD_MODE))
    if request.selector.use_uuids or request.selector.avoid_uuids:
        stages.require(accepted_uuids(demand, cards), stages.counting(Reason.CARD_UUID))
    stages.require(fleet.healthy[cards.rows], stages.counting(Reason.CARD_UNHEALTHY))
    stages.require(~fleet.cordoned[cards.rows], stages.counting(Reason.CARD_CORDONED))
    if idle_only:
        stages.require(cards.idle(), stages.counting(Reason.CARD_EXCLUSIVE))
    elif request.cores_percent:
        stages.require(cards.idle() | ~demand.exclusive[kind], stages.counting(Reason.CARD_EXCLUSIVE))
    stages.require(cards.free_slots > 0, stages.counting(Reason.CARD_SLOTS))
    stages.require_amount(cards.free_memory, demand.memory[kind], Reason.CARD_MEMORY)
    cores = np.full(kind.shape, max(request.cores_percent, 1), np.int32)
    stages.require_amount(cards.free_cores, cores, Reason.CARD_CORES)
    _require_one_numa(stages, demand, cards)
    return stages


def _missing(stages: _Stages, demand: Demand) -> Callable[[int, int], Refusal]:
    some = stages.counting(Reason.TOO_FEW_CARDS)
    none = stages.counting(Reason.NO_CARDS, demand.request.vendor)
    return lambda position, left: some(position, left) if left else none(position, left)


def _require_one_numa(stages: _Stages, demand: Demand, cards: Cards) -> None:
    if not demand.request.selector.same_numa or demand.request.count == 1:
        return
    numa = cards.fleet.numa[cards.rows]
    most = np.zeros(len(numa), np.int64)
    for node in np.unique(numa):
        most = np.maximum(most, stages.count_left(numa == node))
    refuse = stages.counting(Reason.CARD_NUMA)
    stages.require_rows(most >= demand.request.count, lambda position: refuse(position, int(most[position])))


def _refuse_claim(claim: ClaimRequest, demand: Demand, cards: Cards) -> dict[int, Refusal]:
    stages = (
        _refuse_pinned(claim, demand, cards)
        if claim.pinned_ids
        else _refuse_cards(demand, cards, idle_only=claim.is_exclusive)
    )
    lineup = line_up(claim, cards, stages.left)
    scopes = lineup.pools(claim)
    if topology_of(claim) is TopologyMode.REQUIRED:
        islands = [island for pool in scopes for island in lineup.islands_of(pool)]
        _require_joined(claim, stages, lineup, islands)
        scopes = [island & lineup.fast for island in islands]
    if claim.policy is ClaimPolicy.CONTIGUOUS:
        longest = _most(stages, [runs_in(scope, lineup.ids).length.max(axis=1) for scope in scopes])
        refuse = stages.counting(Reason.CARDS_ADJACENT)
        stages.require_rows(longest >= claim.card.count, lambda position: refuse(position, int(longest[position])))
    return stages.found


def _require_joined(claim: ClaimRequest, stages: _Stages, lineup: Lineup, islands: list[Bools]) -> None:
    """Enough cards in one island; and where the claim names a bandwidth, the best that so many cards of one have."""
    count, least = claim.card.count, claim.min_bandwidth_gbps
    if not least:
        together = _most(stages, [np.count_nonzero(island, axis=1) for island in islands])
        refuse = stages.counting(Reason.CARDS_ISLAND)
        stages.require_rows(together >= count, lambda position: refuse(position, int(together[position])))
        return
    by_bandwidth = [np.sort(np.where(island, lineup.bandwidths, 0), axis=1) for island in islands]
    best = _most(stages, [found[:, -count] for found in by_bandwidth])
    refuse = stages.counting(Reason.CARDS_BANDWIDTH, str(least))
    stages.require_rows(best >= least, lambda position: refuse(position, int(best[position])))


def _most(stages: _Stages, figures: Sequence[Longs | Ints]) -> Longs:
    """The largest of these figures for each row, zero where there are none."""
    most = np.zeros(len(stages.left), np.int64)
    for figure in figures:
        most = np.maximum(most, figure)
    return most


def _refuse_pinned(claim: ClaimRequest, demand: Demand, cards: Cards) -> _Stages:
    stages, ids = _Stages(demand, cards), cards.fleet.wirings(cards.rows).ids
    able = eligible_cards(demand, cards, idle_only=claim.is_exclusive) & are_among(ids, claim.pinned_ids)

    def refuse(position: int, left: int) -> Refusal:
        lacking = set(claim.pinned_ids).difference(ids[position, able[position]].tolist())
        of_vendor = np.flatnonzero(demand.of_vendor[cards.kind[position]])
        column_of: dict[int, int] = dict(zip(ids[position, of_vendor].tolist(), of_vendor.tolist(), strict=True))
        words = [f"{one} ({_why_not(demand, cards, position, column_of.get(one))})" for one in sorted(lacking)]
        return Refusal(Reason.CARD_PINNED, claim.card.count, left, stages.where(position), ", ".join(words))

    stages.require(able, refuse)
    _require_one_numa(stages, demand, cards)
    return stages


def _why_not(demand: Demand, cards: Cards, position: int, column: int | None) -> str:
    """Why this card cannot be had, which is known of it."""
    if column is None:
        return "not there"
    row, kind = cards.rows[position], cards.kind[position, column]
    if not cards.fleet.healthy[row, column]:
        return "unhealthy"
    if cards.fleet.cordoned[row, column]:
        return "cordoned"
    if not (demand.usable[kind] and accepted_uuids(demand, cards)[position, column]):
        return "not accepted by the pod"
    return "in use"
