"""Our kinds and the leases of cards as operators read them, and the statuses that operators write.

A field of a status that is None is not there. Written out, it becomes the null by which a merge patch removes it.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

from tessera.kube.kinds import GPU_CLAIMS, GPU_GANGS, LEASES, Selection
from tessera.kube.objects import ObjectMeta
from tessera.model.annotations.keys import CARD_LEASE, CARD_NODE, CARD_PODS


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


class Claim(_Part, frozen=True, kw_only=True):
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


class Gang(_Part, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: GangSpec
    status: GangStatus = GangStatus()


class LeaseMetadata(ObjectMeta, frozen=True, kw_only=True):
    annotations: dict[str, str] | None = None


class LeaseSpec(_Part, frozen=True, kw_only=True):
    holder_identity: str | None = None


class CardLease(_Part, frozen=True, kw_only=True):
    """Who holds a card that is claimed: one pod by its UID, or several that share it."""

    metadata: LeaseMetadata
    spec: LeaseSpec = LeaseSpec()

    @property
    def node(self) -> str:
        return (self.metadata.annotations or {}).get(CARD_NODE, "")

    @property
    def card_id(self) -> int | None:
        """The card's id on its node, which ends the lease's name."""
        last = (self.metadata.name or "").rpartition("-")[2]
        return int(last) if last.isascii() and last.isdecimal() else None

    @property
    def holders(self) -> frozenset[str]:
        """The UIDs of the pods. Whom the list does not name was put there by hand, and holds it alone."""
        holder, listed = self.spec.holder_identity or "", (self.metadata.annotations or {}).get(CARD_PODS, "")
        uids = frozenset(filter(None, (uid.strip() for uid in listed.split(","))))
        return uids if holder == SHARED or holder in uids else frozenset(filter(None, (holder,)))


SHARED = "shared"
"""The holder of a card that several pods share; they are listed beside it."""
CLAIMS = GPU_CLAIMS.decoded_as(Claim)
GANGS = GPU_GANGS.decoded_as(Gang)
CARD_LEASES = LEASES.decoded_as(CardLease)


def card_leases_in(namespace: str) -> Selection:
    return Selection(namespace=namespace, labels=f"{CARD_LEASE}=true")


def name_some(names: Sequence[str]) -> str:
    """The first of them, and how many more there are: a message must not grow with the cluster."""
    shown = ", ".join(names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


MOST_NAMED = 3
