"""What people are told of a Compute when its status changes, as events. Pure.

A word is told once for as long as it stands: what differs only in its message is on the Compute for who wants it.
"""

from tessera.operators.compute_objects import ComputeStatus
from tessera.operators.compute_status import READY, ROUTED, STALLED, SUSPENDED
from tessera.operators.objects import Condition
from tessera.operators.telling import Telling

ON_ITS_WAY = (
    "StatefulSetNotReady",
    "StatefulSetNotAvailable",
    "Suspended",
    "Suspending",
    "Deleting",
    "PredecessorGoing",
)
"""Why a Compute is not ready that is nothing to worry about."""


def tell_compute(before: ComputeStatus, after: ComputeStatus) -> list[Telling]:
    was, now = _by_type(before), _by_type(after)
    return [
        telling
        for kind in (SUSPENDED, READY, ROUTED, STALLED)
        if kind in now and _word(was.get(kind)) != _word(now[kind])
        for telling in _tell(was.get(kind), now[kind])
    ]


def _tell(was: Condition | None, now: Condition) -> list[Telling]:
    is_so = now.status == "True"
    if now.type == SUSPENDED:
        return [Telling("Normal", now.reason, now.message)] if is_so or was else []
    if now.type == READY:
        if is_so:
            return [Telling("Normal", READY, now.message)]
        return [] if now.reason in ON_ITS_WAY else [Telling("Warning", now.reason, now.message)]
    if now.type == ROUTED:
        if now.reason == "RoutePending":
            return []
        return [Telling("Normal" if is_so else "Warning", now.reason, now.message)]
    return [Telling("Warning", STALLED, f"waiting does not help: {now.message}")] if is_so else []


def _by_type(status: ComputeStatus) -> dict[str, Condition]:
    return {one.type: one for one in status.conditions or ()}


def _word(condition: Condition | None) -> tuple[str, str] | None:
    return (condition.status, condition.reason) if condition else None
