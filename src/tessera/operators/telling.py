"""What people are told of a claim when its status changes, as events. Pure.

Only changes of what a claim holds are told, so nothing is repeated: why a pod waits stands on the pod.
"""

from typing import NamedTuple

from tessera.kube.event_series import EventLevel
from tessera.operators.objects import ClaimStatus, Phase


class Telling(NamedTuple):
    level: EventLevel
    reason: str
    message: str


def tell_claim(before: ClaimStatus, after: ClaimStatus) -> list[Telling]:
    """In the order in which it happened."""
    told: list[Telling] = []
    is_same = (before.pod_uid, before.phase) == (after.pod_uid, after.phase)
    if before.phase is Phase.BOUND and not is_same:
        cards = before.allocated or f"GPUs of {before.node_name}"
        told.append(Telling("Normal", "Released", f"pod {before.pod_name} no longer holds {cards}"))
    if after.phase is Phase.BOUND and not is_same:
        cards = after.allocated or f"GPUs of {after.node_name}"
        told.append(Telling("Normal", "Bound", f"pod {after.pod_name} holds {cards}"))
    if after.phase is Phase.FAILED and before.phase is not Phase.FAILED:
        told.append(Telling("Warning", "Failed", after.message or ""))
    return told
