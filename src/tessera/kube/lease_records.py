"""What a Lease object says, and how a replica judges it. Pure.

Nobody compares clocks with anybody. A replica notes when, by its own monotonic clock, it saw the record change; a
holder that has not changed it for the lease's duration since then is gone. What the holder itself may still do is
the rule of `engine.fencing`, which gets these times.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from tessera.engine.fencing import Fence, Term, may_take_over
from tessera.kube.kinds import LEASES
from tessera.kube.objects import Document, ObjectMeta


class LeaseSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Times are the holder's, for people and to see that they changed."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


NO_SPEC = LeaseSpec()


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: LeaseSpec | None = None


LEASE_RECORDS = LEASES.decoded_as(Lease)


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What the lease says, and when by our own clock it was first seen to say so."""

    spec: LeaseSpec
    resource_version: str
    seen_at_s: float

    @property
    def holder(self) -> str:
        return self.spec.holder_identity or ""

    @property
    def term(self) -> Term | None:
        """The holder's time as a leader, as late as it can be; None, if the lease is free."""
        if not self.holder:
            return None
        return Term(holder=self.holder, acquired_at=self.seen_at_s, renewed_at=self.seen_at_s)


def observe(before: Observation | None, lease: Lease, now_s: float) -> Observation:
    """A record that was merely labelled, or read again, was not renewed."""
    spec = lease.spec or NO_SPEC
    unchanged = before is not None and before.spec == spec
    seen_at_s = before.seen_at_s if before is not None and unchanged else now_s
    return Observation(spec=spec, resource_version=lease.metadata.resource_version or "", seen_at_s=seen_at_s)


def may_acquire(seen: Observation | None, now_s: float, fence: Fence) -> bool:
    """Whether someone who does not hold the lease may take it. The longer of its duration and ours counts."""
    if seen is None or seen.term is None:
        return True
    longest_s = max(fence.lease_duration, seen.spec.lease_duration_seconds or 0)
    return may_take_over(seen.term, now_s, msgspec.structs.replace(fence, lease_duration=longest_s))


def acquisition(holder: str, seen: Observation | None, fence: Fence, wall: datetime) -> Document:
    """The spec of a new term."""
    transitions = 0 if seen is None else (seen.spec.lease_transitions or 0) + 1
    return {
        "holderIdentity": holder,
        "leaseDurationSeconds": round(fence.lease_duration),
        "acquireTime": micro_time(wall),
        "renewTime": micro_time(wall),
        "leaseTransitions": transitions,
    }


def renewal(wall: datetime) -> Document:
    return {"renewTime": micro_time(wall)}


def release() -> Document:
    """Nobody holds it. The shortest duration that is valid, for those who judge by what the record says."""
    return {"holderIdentity": "", "leaseDurationSeconds": 1}


def lease_document(name: str, spec: Document, owner: Document | None = None) -> Document:
    metadata: dict[str, Any] = {"name": name}
    if owner:
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": LEASES.api_version, "kind": LEASES.name, "metadata": metadata, "spec": spec}


def micro_time(wall: datetime) -> str:
    return wall.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
