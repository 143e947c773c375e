"""Planning pods together: enough of them find a place at once, or none takes any.

Each member is placed as if it were alone, on a ledger that has the members before it already. Large ones come first,
because small ones find room where large ones do not; where that fails, those that found no place come first. What is
planned is reserved until a deadline.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger
from tessera.errors import LedgerConflict
from tessera.model.allocations import Allocation
from tessera.model.requests import PodRef, PodRequest

MOST_TRIES = 4


class Member(NamedTuple):
    ref: PodRef
    request: PodRequest


class GangPlan(NamedTuple):
    """What is reserved for whom: nothing, where fewer than needed found a place. `most` is how many did."""

    placed: dict[str, Allocation]
    most: int


def plan_gang(
    ledger: Ledger,
    decider: Decider,
    members: Sequence[Member],
    needed: int,
    *,
    expires_at: float,
    ask: Callable[[Member], PodRequest | None],
) -> GangPlan:
    """Reserve a place for at least `needed` of the members.

    `ask` says what a member asks for once those before it have their places; None, if it may have none. Who finds no
    place comes first in the next try, unless somebody who asks for the same found one: it may be choosier than those
    who were before it.
    """
    order, most = sorted(members, key=_by_size), 0
    for _ in range(MOST_TRIES):
        placed = _place(ledger, decider, order, expires_at, ask)
        if len(placed) >= needed:
            return GangPlan(placed, len(placed))
        for uid in placed:
            ledger.release(uid)
        most = max(most, len(placed))
        lacking = [member for member in order if member.ref.uid not in placed]
        others = [member for member in order if member.ref.uid in placed]
        if {member.request for member in lacking} <= {member.request for member in others} or order == lacking + others:
            break
        order = lacking + others
    return GangPlan({}, most)


def _place(
    ledger: Ledger,
    decider: Decider,
    members: Sequence[Member],
    expires_at: float,
    ask: Callable[[Member], PodRequest | None],
) -> dict[str, Allocation]:
    """Those that find a place, one after the other."""
    placed: dict[str, Allocation] = {}
    for member in members:
        request = ask(member)
        if request is None:
            continue
        allocation = decider.choose(request)
        if allocation is not None and _reserve(ledger, Member(member.ref, request), allocation, expires_at):
            placed[member.ref.uid] = allocation
    return placed


def _reserve(ledger: Ledger, member: Member, allocation: Allocation, expires_at: float) -> bool:
    try:
        ledger.reserve(member.ref, member.request, allocation, expires_at=expires_at)
    except LedgerConflict:
        return False
    return True


def _by_size(member: Member) -> tuple[int, int, int, str, str]:
    request = member.request
    cards = sum(device.count for container in request.containers for device in container.devices)
    cards += request.claim.card.count if request.claim else 0
    return -cards, -request.host.cpu_milli, -request.host.memory_bytes, member.ref.namespace, member.ref.name
