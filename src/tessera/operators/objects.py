"""Our kinds as operators read them, and the statuses that operators write.

A field of a status that is None is not there. Written out, it becomes the null by which a merge patch removes it.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec

from tessera.kube.kinds import GPU_CLAIMS, GPU_GANGS, Selection
from tessera.kube.objects import ObjectMeta
from tessera.model.annotations.keys import CARD_LEASE
from tessera.model.card_leases import MANAGED
from tessera.operators.owning import Named


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class Phase(StrEnum):
    PENDING = "Pending"
    RESERVED = "Reserved"
    BOUND = "Bound"
    FAILED = "Failed"


class Condition(_Part, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str
    message: str
    last_transition_time: str = ""
    observed_generation: int | None = None


class ClaimStatus(_Part, frozen=True, kw_only=True):
    phase: Phase | None = None
    node_name: str | None = None
    gpu_ids: tuple[int, ...] | None = None
    allocated: str | None = None
    message: str | None = None
    pod_name: str | None = None
    pod_uid: str | None = None
    conditions: tuple[Condition, ...] | None = None


class GangStatus(_Part, frozen=True, kw_only=True):
    members: int | None = None
    bound: int | None = None
    phase: Phase | None = None
    message: str | None = None


class ClaimMetadata(ObjectMeta, frozen=True, kw_only=True):
    generation: int | None = None


class Claim(Named, frozen=True, kw_only=True):
    """`spec` as it stands in the API; `model.claims` reads it."""

    metadata: ClaimMetadata
    spec: Any = None
    status: ClaimStatus = ClaimStatus()

    @property
    def gang(self) -> str:
        """The name of the pod group that its pods are in, or none."""
        spec: dict[str, Any] = self.spec or {}
        return spec.get("gangRef") or ""


class GangSpec(_Part, frozen=True, kw_only=True):
    min_member: int


class Gang(Named, frozen=True, kw_only=True):
    spec: GangSpec
    status: GangStatus = GangStatus()


CLAIMS = GPU_CLAIMS.decoded_as(Claim)
GANGS = GPU_GANGS.decoded_as(Gang)


def card_leases_in(namespace: str) -> Selection:
    return Selection(namespace=namespace, labels=f"{CARD_LEASE}={MANAGED}")


def keep_times(
    conditions: Iterable[Condition] | None, before: Iterable[Condition] | None, now: str
) -> tuple[Condition, ...]:
    """The same, with the moment since which each condition is as it is."""
    since = {(one.type, one.status): one.last_transition_time for one in before or ()}
    return tuple(
        msgspec.structs.replace(one, last_transition_time=since.get((one.type, one.status)) or now)
        for one in conditions or ()
    )


def second_of(at: datetime) -> str:
    """As the API writes times."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def name_some(names: Sequence[str]) -> str:
    """The first of them, and how many more there are: a message must not grow with the cluster."""
    shown = ", ".join(names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


MOST_NAMED = 3
