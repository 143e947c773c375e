"""Placing a pod on many nodes at once, on paper.

A trial tells for every row whether the pod fits and what would be left. Containers are counted as Kubernetes counts
them: app containers and sidecars add up; an init container runs before them, beside the sidecars started so far, so a
card must hold the larger of the two. One container takes a card at most once. Memory and cores may be shared out to
the last unit, but a card whose cores are all taken takes nobody else, and who wants all cores gets the card alone. What
a pod claims as a whole it takes before its containers do.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tessera.engine.arrays import Bools, Ints, Longs, Rows
from tessera.engine.claiming import Choice, pick_claimed
from tessera.engine.demand import Demand, Demands
from tessera.engine.fleet import Fleet
from tessera.engine.policy import CardPolicy
from tessera.model.requests import ClaimRequest, HostRequest, PodRequest, Role

NO_HOST = HostRequest()
THE_POD = -1
"""In place of a container's position: what the pod holds as a whole."""


class Cards:
    """The cards of some rows, and what of them would be free after the containers placed so far.

    `cpu_free` and `memory_free` are what the hosts would have left with the pod on them.
    """

    __slots__ = (
        "cpu_free",
        "fleet",
        "free_cores",
        "free_memory",
        "free_slots",
        "kind",
        "memory_free",
        "rows",
        "usable",
    )

    def __init__(self, fleet: Fleet, rows: Rows, host: HostRequest = NO_HOST) -> None:
        self.fleet = fleet
        self.rows = rows
        self.cpu_free: Longs = fleet.cpu_free[rows] - host.cpu_milli
        self.memory_free: Longs = fleet.memory_free[rows] - host.memory_bytes
        self.kind: Ints = fleet.kind[rows]
        self.usable: Bools = fleet.healthy[rows] > fleet.cordoned[rows]
        self.free_slots: Ints = fleet.free_slots[rows]
        self.free_memory: Ints = fleet.free_memory[rows]
        self.free_cores: Ints = fleet.free_cores[rows]

    def part(self, positions: Rows) -> "Cards":
        """Some of these rows, as they stand."""
        other = object.__new__(Cards)
        other.fleet = self.fleet
        for name in Cards.__slots__:
            if name != "fleet":
                setattr(other, name, getattr(self, name)[positions])
        return other

    def copy(self) -> "Cards":
        """The same cards, for placing something else on them."""
        other = object.__new__(Cards)
        other.fleet, other.rows, other.kind, other.usable = self.fleet, self.rows, self.kind, self.usable
        other.cpu_free, other.memory_free = self.cpu_free, self.memory_free
        other.free_slots = self.free_slots.copy()
        other.free_memory = self.free_memory.copy()
        other.free_cores = self.free_cores.copy()
        return other

    def idle(self) -> Bools:
        return self.free_slots == self.fleet.kind_slots[self.kind]

    def take(self, demand: Demand, picked: Bools) -> None:
        self.free_slots -= picked
        self.free_memory -= picked * demand.memory[self.kind]
        if demand.takes_cores:
            self.free_cores -= picked * demand.cores[self.kind]

    def leave_least(self, other: "Cards") -> None:
        """Keep free only what is free in both."""
        np.minimum(self.free_slots, other.free_slots, out=self.free_slots)
        np.minimum(self.free_memory, other.free_memory, out=self.free_memory)
        np.minimum(self.free_cores, other.free_cores, out=self.free_cores)


class Pick(NamedTuple):
    """Which cards a container's request, or the pod's claim, got for every row of the trial."""

    container: int
    demand: Demand
    cards: Bools


class Trial(NamedTuple):
    """The outcome for each row. `after`, `picks` and `wishes` mean something only where `fits`.

    `wishes` says how well the pod's claim is served, where it has one.
    """

    request: PodRequest
    fits: Bools
    before: Cards
    after: Cards
    picks: Sequence[Pick]
    wishes: Longs | None = None


def try_pod(
    request: PodRequest, fleet: Fleet, rows: Rows, *, admitted: Bools, demands: Demands, policy: CardPolicy
) -> Trial:
    """Place the pod on each row as if it were alone. `admitted` says which rows the host itself allows."""
    before = Cards(fleet, rows, request.host)
    fits = admitted & (fleet.pods_free[rows] > 0)
    if request.host.cpu_milli:  # who asks for none may come to a node that has promised too much
        fits &= before.cpu_free >= 0
    if request.host.memory_bytes:
        fits &= before.memory_free >= 0
    if not request.wants_devices:
        return Trial(request, fits, before, before, ())
    after, picks = before.copy(), list[Pick]()
    wishes = None
    if request.claim is not None:
        demand = demands.of_claim(request.claim)
        picked, found, wishes = choose_claimed(request.claim, demand, after)
        fits &= found
        after.take(demand, picked)
        picks.append(Pick(THE_POD, demand, picked))
    peaks = list[Cards]()
    for index, container in enumerate(request.containers):
        cards = after
        if container.role is Role.INIT and container.devices:
            cards = after.copy()
            peaks.append(cards)
        for device_request in container.devices:
            demand = demands.of(device_request)
            picked, enough = pick_cards(demand, cards, policy)
            fits &= enough
            cards.take(demand, picked)
            picks.append(Pick(index, demand, picked))
    for peak in peaks:
        after.leave_least(peak)
    return Trial(request, fits, before, after, picks, wishes)


def choose_claimed(claim: ClaimRequest, demand: Demand, cards: Cards) -> Choice:
    """Cards for a claim. The pod's card policy has no say in them: the claim has its own."""
    return pick_claimed(claim, cards, eligible_cards(demand, cards, idle_only=claim.is_exclusive))


def pick_cards(demand: Demand, cards: Cards, policy: CardPolicy) -> tuple[Bools, Bools]:
    """The cards that the policy likes best on each row, and on which rows there are enough of them."""
    eligible = eligible_cards(demand, cards, idle_only=policy.idle_only)
    if demand.request.selector.same_numa and demand.request.count > 1:
        eligible &= on_fullest_numa(eligible, cards, demand.request.count)
    enough = np.count_nonzero(eligible, axis=1) >= demand.request.count
    return policy.pick(demand, cards, eligible) & enough[:, None], enough


def eligible_cards(demand: Demand, cards: Cards, *, idle_only: bool) -> Bools:
    kind, request = cards.kind, demand.request
    eligible = demand.usable[kind]
    eligible &= cards.usable
    eligible &= cards.free_slots > 0
    eligible &= cards.free_memory >= demand.memory[kind]
    eligible &= cards.free_cores >= max(request.cores_percent, 1)
    if idle_only:
        eligible &= cards.idle()
    elif request.cores_percent:
        eligible &= cards.idle() | ~demand.exclusive[kind]
    if request.selector.use_uuids or request.selector.avoid_uuids:
        eligible &= accepted_uuids(demand, cards)
    return eligible


def accepted_uuids(demand: Demand, cards: Cards) -> Bools:
    wanted, avoided = set(demand.request.selector.use_uuids), set(demand.request.selector.avoid_uuids)
    accepted = np.zeros(cards.kind.shape, np.bool_)
    for position, row in enumerate(map(int, cards.rows)):
        for column, uuid in enumerate(cards.fleet.uuids[row]):
            accepted[position, column] = uuid not in avoided and (not wanted or uuid in wanted)
    return accepted


def on_fullest_numa(eligible: Bools, cards: Cards, count: int) -> Bools:
    """Only the cards of one NUMA node per row: the one with the fewest eligible cards that still suffice."""
    numa = cards.fleet.numa[cards.rows]
    nodes = np.unique(numa)
    if not len(nodes):
        return eligible
    counts = np.stack([np.count_nonzero(eligible & (numa == node), axis=1) for node in nodes], axis=1)
    spare = np.where(counts >= count, counts, np.iinfo(np.int64).max)
    return numa == nodes[spare.argmin(axis=1)][:, None]
