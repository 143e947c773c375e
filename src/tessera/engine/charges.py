"""What a pod's allocation costs each card.

App containers and sidecars hold their cards together; an init container holds its own only before them, beside the
sidecars that started earlier. So a card is charged the larger of the two, in each of its three figures. What the pod
holds by a claim all its containers use, and it is charged once.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tessera.model.allocations import Allocation, ContainerShares
from tessera.model.requests import Role


class Charge(NamedTuple):
    slots: int = 0
    memory_mib: int = 0
    cores_percent: int = 0

    def plus(self, other: "Charge") -> "Charge":
        return Charge(self[0] + other[0], self[1] + other[1], self[2] + other[2])

    def times(self, factor: int) -> "Charge":
        return Charge(self[0] * factor, self[1] * factor, self[2] * factor)

    def at_least(self, other: "Charge") -> "Charge":
        return Charge(max(self[0], other[0]), max(self[1], other[1]), max(self[2], other[2]))

    def at_most(self, other: "Charge") -> "Charge":
        return Charge(min(self[0], other[0]), min(self[1], other[1]), min(self[2], other[2]))


NOTHING = Charge()


def charges_of(allocation: Allocation, roles: Sequence[Role], *, initialised: bool = False) -> dict[str, Charge]:
    """The charge on each card by UUID; without the init containers once they have all finished."""
    steady = _together({}, allocation.claimed)
    peak: dict[str, Charge] = {}
    for position, shares in enumerate(allocation.containers):
        role = roles[position] if position < len(roles) else Role.APP
        if role is not Role.INIT:
            steady = _together(steady, shares)
        elif not initialised:
            peak = _larger(peak, _together(steady, shares))
    return _larger(steady, peak)


def total_of(charges: Iterable[Charge]) -> Charge:
    total = NOTHING
    for charge in charges:
        total = total.plus(charge)
    return total


def _together(charges: Mapping[str, Charge], shares: ContainerShares) -> dict[str, Charge]:
    total = dict(charges)
    for share in shares:
        charge = Charge(1, share.memory_mib, share.cores_percent)
        total[share.uuid] = total.get(share.uuid, NOTHING).plus(charge)
    return total


def _larger(one: Mapping[str, Charge], other: Mapping[str, Charge]) -> dict[str, Charge]:
    return {uuid: one.get(uuid, NOTHING).at_least(other.get(uuid, NOTHING)) for uuid in {**one, **other}}
