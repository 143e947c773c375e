"""Who holds what: the one structure that every promise of a card goes through.

One writer. A pod's holding is `reserved` (until it expires), `bound`, or `draining`: gone from the API, but its
processes not yet confirmed dead. All three occupy their cards. `reserve` refuses whatever would over-commit; `adopt`
records what the API server says is so, even where it contradicts us, and `overcommitted` tells where it does.

The ledger is rebuilt wholly from nodes and pods in any order: a holding on a node that is not known yet, or on a card
that has vanished, waits and is charged when the card appears.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from tessera.engine.charges import NOTHING, Charge, charges_of, total_of
from tessera.engine.fleet import MAX_CARD_MEMORY_MIB, Fleet
from tessera.errors import LedgerConflict
from tessera.model.allocations import Allocation
from tessera.model.devices import Node
from tessera.model.requests import PodRef, PodRequest

# Anyone may write an annotation. What one claims beyond any card or host is counted as just beyond it, so that the
# arrays' integers never run over and make a crowded card look free.
CARD_CEILING = Charge(10_001, MAX_CARD_MEMORY_MIB + 1, 10_001)
HOST_CEILING = 2**54


class State(StrEnum):
    RESERVED = "reserved"
    BOUND = "bound"
    DRAINING = "draining"


class Holding:
    __slots__ = ("allocation", "expires_at", "initialised", "ref", "request", "state")

    def __init__(self, ref: PodRef, request: PodRequest, allocation: Allocation, state: State, expires_at: float):
        self.ref = ref
        self.request = request
        self.allocation = allocation
        self.state = state
        self.expires_at = expires_at
        self.initialised = False

    def charges(self) -> dict[str, Charge]:
        roles = [container.role for container in self.request.containers]
        charges = charges_of(self.allocation, roles, initialised=self.initialised)
        return {uuid: charge.at_most(CARD_CEILING) for uuid, charge in charges.items()}


class Overcommitted(NamedTuple):
    node: str
    uuid: str
    missing: Charge


class Ledger:
    def __init__(self) -> None:
        self.fleet = Fleet()
        self._holdings: dict[str, Holding] = {}
        self._reserved: dict[str, Holding] = {}
        self._on_node: dict[str, dict[str, Holding]] = {}
        self._interned: dict[PodRequest, PodRequest] = {}
        self._held: dict[tuple[str, str], Charge] = {}
        self.live: dict[PodRequest, int] = {}

    def __len__(self) -> int:
        return len(self._holdings)

    def __iter__(self) -> Iterator[Holding]:
        return iter(self._holdings.values())

    def holding(self, uid: str) -> Holding | None:
        return self._holdings.get(uid)

    def holdings_on(self, node: str) -> Iterable[Holding]:
        return self._on_node.get(node, {}).values()

    def held(self, namespace: str, vendor: str) -> Charge:
        """What the pods of a namespace hold of a vendor's cards, all nodes together."""
        return self._held.get((namespace, vendor), NOTHING)

    @staticmethod
    def charge_of(request: PodRequest, allocation: Allocation) -> Charge:
        """What an allocation would cost, all its cards together."""
        roles = [container.role for container in request.containers]
        return total_of(charges_of(allocation, roles).values())

    def put_node(self, node: Node) -> None:
        """Take over what a node reports now; what pods hold there stays charged."""
        row = self.fleet.put(node)
        for holding in self.holdings_on(node.name):
            self._occupy(row, holding, sign=1)

    def drop_node(self, name: str) -> None:
        """The node is gone from the API. Its holdings stay until their pods are released."""
        if name in self.fleet.row_of:
            self.fleet.remove(name)

    def reserve(self, ref: PodRef, request: PodRequest, allocation: Allocation, *, expires_at: float) -> None:
        """Hold the cards for a pod until `expires_at`. Repeating the same reservation renews it."""
        known = self._holdings.get(ref.uid)
        if known is not None:
            if known.allocation != allocation:
                raise LedgerConflict(
                    f"{ref} already holds cards on {known.allocation.node}, cannot reserve others on "
                    f"{allocation.node}; release them first"
                )
            known.expires_at = max(known.expires_at, expires_at)
            return
        holding = Holding(ref, request, allocation, State.RESERVED, expires_at)
        self._check_room(holding)
        self._add(holding)
        self._reserved[ref.uid] = holding

    def commit(self, uid: str) -> None:
        """The binding has landed: the reservation no longer expires. A late answer revives nothing that drains."""
        holding = self._require(uid)
        if holding.state is State.RESERVED:
            self._keep(holding, State.BOUND)

    def adopt(self, ref: PodRef, request: PodRequest, allocation: Allocation) -> None:
        """Record a binding that the API server shows, whatever we thought before."""
        known = self._holdings.get(ref.uid)
        if known is not None and known.allocation == allocation and known.request == request:
            if known.state is State.RESERVED:
                self.commit(ref.uid)
            return
        self.release(ref.uid)
        self._add(Holding(ref, request, allocation, State.BOUND, float("inf")))

    def settle(self, uid: str) -> None:
        """All init containers have finished: what only they needed is free again."""
        holding = self._require(uid)
        if holding.initialised:
            return
        self._charge(holding, sign=-1)
        holding.initialised = True
        self._charge(holding, sign=1)

    def drain(self, uid: str) -> None:
        """The pod is gone from the API, its processes perhaps not: keep its cards until `release`."""
        self._keep(self._require(uid), State.DRAINING)

    def release(self, uid: str) -> None:
        """Free what the pod holds; nothing happens where it holds nothing."""
        holding = self._holdings.pop(uid, None)
        if holding is None:
            return
        self._reserved.pop(uid, None)
        neighbours = self._on_node[holding.allocation.node]
        del neighbours[uid]
        if not neighbours:
            del self._on_node[holding.allocation.node]
        self._charge(holding, sign=-1)
        self._count_live(holding.request, -1)

    def expire(self, now: float) -> list[PodRef]:
        """Free every reservation whose time has passed, and say whose they were."""
        late = [holding.ref for holding in self._reserved.values() if holding.expires_at <= now]
        for ref in late:
            self.release(ref.uid)
        return late

    def overcommitted(self) -> list[Overcommitted]:
        """Cards that are promised more than they have, from what others bound or a card that shrank."""
        fleet = self.fleet
        short = (fleet.free_slots < 0) | (fleet.free_memory < 0) | (fleet.free_cores < 0)
        found = list[Overcommitted]()
        for row, column in np.argwhere(short).tolist():
            missing = Charge(*(max(0, -figure) for figure in _free(fleet, row, column)))
            found.append(Overcommitted(fleet.names[row], fleet.uuids[row][column], missing))
        return found

    def _keep(self, holding: Holding, state: State) -> None:
        holding.state = state
        holding.expires_at = float("inf")
        self._reserved.pop(holding.ref.uid, None)

    def _check_room(self, holding: Holding) -> None:
        ref, node, fleet = holding.ref, holding.allocation.node, self.fleet
        row = fleet.row_of.get(node)
        if row is None:
            raise LedgerConflict(f"{ref}: node {node} is not known, expected one that has registered")
        host = holding.request.host
        if (
            host.cpu_milli > max(fleet.cpu_free[row], 0)
            or host.memory_bytes > max(fleet.memory_free[row], 0)
            or not fleet.pods_free[row] > 0
        ):
            raise LedgerConflict(f"{ref}: node {node} has no room left for the pod's CPU, memory or place")
        for uuid, charge in holding.charges().items():
            column = fleet.column_of(row, uuid)
            if column is None:
                raise LedgerConflict(f"{ref}: card {uuid} is not on node {node}")
            widest = max(share.cores_percent for share in holding.allocation.shares if share.uuid == uuid)
            self._check_card(holding, row, column, charge, widest)

    def _check_card(self, holding: Holding, row: int, column: int, charge: Charge, widest: int) -> None:
        fleet = self.fleet
        where = f"{holding.ref}: card {fleet.uuids[row][column]} on node {holding.allocation.node}"
        if not fleet.healthy[row, column] or fleet.cordoned[row, column]:
            raise LedgerConflict(f"{where} is unhealthy or cordoned")
        free = _free(fleet, row, column)
        if any(wanted > left for wanted, left in zip(charge, free, strict=True)):
            raise LedgerConflict(f"{where} has {tuple(free)} free (slots, MiB, cores), {tuple(charge)} wanted")
        kind = fleet.kinds[int(fleet.kind[row, column])]
        if widest >= kind.cores_percent and free.slots != kind.slots:
            raise LedgerConflict(f"{where} is shared, expected an idle one for a request of all its cores")
        if free.cores_percent <= 0:
            raise LedgerConflict(f"{where} has no cores left, even for a request without any")

    def _add(self, holding: Holding) -> None:
        uid = holding.ref.uid
        holding.request = self._interned.setdefault(holding.request, holding.request)
        self._holdings[uid] = holding
        self._on_node.setdefault(holding.allocation.node, {})[uid] = holding
        self._charge(holding, sign=1)
        self._count_live(holding.request, 1)

    def _charge(self, holding: Holding, *, sign: int) -> None:
        """Charge the holding to its namespace and its node, or with a negative sign take it back."""
        for charge, vendor in _by_vendor(holding):
            key = holding.ref.namespace, vendor
            held = self._held.get(key, NOTHING).plus(charge.times(sign))
            if held == NOTHING:
                self._held.pop(key, None)
            else:
                self._held[key] = held
        row = self.fleet.row_of.get(holding.allocation.node)
        if row is not None:
            self._occupy(row, holding, sign=sign)

    def _occupy(self, row: int, holding: Holding, *, sign: int) -> None:
        fleet, host = self.fleet, holding.request.host
        fleet.cpu_free[row] -= sign * min(host.cpu_milli, HOST_CEILING)
        fleet.memory_free[row] -= sign * min(host.memory_bytes, HOST_CEILING)
        fleet.pods_free[row] -= sign
        for uuid, charge in holding.charges().items():
            column = fleet.column_of(row, uuid)
            if column is not None:
                fleet.free_slots[row, column] -= sign * charge.slots
                fleet.free_memory[row, column] -= sign * charge.memory_mib
                fleet.free_cores[row, column] -= sign * charge.cores_percent
        fleet.touch(row)

    def _count_live(self, request: PodRequest, change: int) -> None:
        count = self.live.get(request, 0) + change
        if count:
            self.live[request] = count
        else:
            del self.live[request], self._interned[request]

    def _require(self, uid: str) -> Holding:
        holding = self._holdings.get(uid)
        if holding is None:
            raise LedgerConflict(f"pod {uid} holds nothing, expected a reservation or a binding")
        return holding


def _by_vendor(holding: Holding) -> list[tuple[Charge, str]]:
    charges = holding.charges()
    vendors = {share.uuid: share.vendor for share in holding.allocation.shares}
    return [
        (total_of(charge for uuid, charge in charges.items() if vendors[uuid] == vendor), vendor)
        for vendor in set(vendors.values())
    ]


def _free(fleet: Fleet, row: int, column: int) -> Charge:
    return Charge(
        int(fleet.free_slots[row, column]), int(fleet.free_memory[row, column]), int(fleet.free_cores[row, column])
    )


def figures(ledger: Ledger) -> Mapping[tuple[str, str], Charge]:
    """What is free on each card by node and UUID: two ledgers that agree on this agree."""
    fleet = ledger.fleet
    return {
        (fleet.names[row], uuid): _free(fleet, row, column)
        for row, uuids in enumerate(fleet.uuids)
        for column, uuid in enumerate(uuids)
    }
