"""What a Compute says of itself, read into one verdict: ready, still waiting for something, or never by waiting.

Pure: a resource comes in, a verdict goes out. A condition counts only if it was written about the spec as it is now.
"""

from dataclasses import dataclass

from kpu.client.models import KpuV1alpha1Compute, KpuV1Condition

READY = "Ready"
STALLED = "Stalled"


@dataclass(frozen=True)
class Ready:
    pass


@dataclass(frozen=True)
class Waiting:
    """`reason` and `message` as the operator gives them, or ours where it has said nothing yet."""

    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


@dataclass(frozen=True)
class Failed(Waiting):
    """It will not get better by waiting."""


@dataclass(frozen=True)
class IsSuspended:
    pass


@dataclass(frozen=True)
class IsDeleted:
    pass


Verdict = Ready | Waiting | IsSuspended | IsDeleted


def judge(compute: KpuV1alpha1Compute) -> Verdict:
    if compute.metadata.deletion_timestamp is not None:
        return IsDeleted()
    if compute.spec.suspend:
        return IsSuspended()
    stalled = current_condition(compute, STALLED)
    if stalled and stalled.status == "True":
        return Failed(stalled.reason or STALLED, stalled.message or "")
    ready = current_condition(compute, READY)
    if ready is None:
        return Waiting("Pending", "the operator has not said anything about it yet")
    if ready.status == "True":
        return Ready()
    return Waiting(ready.reason or "NotReady", ready.message or "")


def current_condition(compute: KpuV1alpha1Compute, of_type: str) -> KpuV1Condition | None:
    """None also where the condition is about an older spec."""
    found = compute.condition(of_type)
    if found is None or compute.status is None:
        return None
    about = found.observed_generation or compute.status.observed_generation
    now = compute.metadata.generation
    return None if about and now and about < now else found


def explains_itself(compute: KpuV1alpha1Compute) -> bool:
    """Whether its operator tells by itself when waiting is in vain; otherwise its pods must be looked at."""
    return compute.condition(STALLED) is not None
