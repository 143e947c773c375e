"""The Lease of a card that is claimed: who holds it, for everybody to see. Pure.

`gpu-node-a-0` is held by the UID of a pod. While the pod has the card only reserved the Lease has a duration, and
expires; once the pod is bound it has none. A card that several pods share is held by `shared`, and an annotation lists
them. All these Leases are in one namespace, so that a card has one, whatever namespaces its pods are in.
"""

from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

from tessera.model.annotations import keys
from tessera.model.requests import PodRef

Document = dict[str, Any]
SHARED = "shared"
RESERVED_S = 30
MANAGED = "true"
_LONGEST_NAME = 253
_DIGEST = 10


class CardRef(NamedTuple):
    """A card by its place, as Leases name it, and by what does not change when cards are counted anew."""

    node: str
    id: int
    uuid: str

    def __str__(self) -> str:
        return f"{self.node}:{self.id}"

    @property
    def lease_name(self) -> str:
        name = f"gpu-{self.node}-{self.id}"
        if len(name) <= _LONGEST_NAME:
            return name
        digest = sha256(self.node.encode()).hexdigest()[:_DIGEST]
        kept = _LONGEST_NAME - len(f"gpu---{self.id}") - _DIGEST
        return f"gpu-{self.node[:kept].rstrip('.-')}-{digest}-{self.id}"


class Hold(NamedTuple):
    """Who holds a card, and how. `until_bound` is a hold that expires."""

    pods: tuple[PodRef, ...]
    is_shared: bool
    until_bound: bool = False

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(pod.uid for pod in self.pods)


def lease_for(card: CardRef, hold: Hold, now: datetime, before: Document | None = None) -> Document:
    """The Lease as it is to be. Of the one `before` it keeps what is not about holding, and its version."""
    head, spec = dict(_part(before or {}, "metadata")), dict(_part(before or {}, "spec"))
    stamp = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    holder = SHARED if hold.is_shared else hold.pods[0].uid
    if spec.get("holderIdentity") != holder or "acquireTime" not in spec:
        spec["acquireTime"] = stamp
        spec["leaseTransitions"] = spec.get("leaseTransitions", -1) + 1
    spec |= {"holderIdentity": holder, "renewTime": stamp}
    spec.pop("leaseDurationSeconds", None)
    if hold.until_bound:
        spec["leaseDurationSeconds"] = RESERVED_S
    head["name"] = card.lease_name
    head["labels"] = {**_part(head, "labels"), keys.CARD_LEASE: MANAGED}
    head["annotations"] = {**_part(head, "annotations"), **_annotations(card, hold)}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": head, "spec": spec}


def _annotations(card: CardRef, hold: Hold) -> dict[str, str]:
    pods = sorted(hold.pods, key=lambda pod: pod.uid)
    return {
        keys.CARD_NODE: card.node,
        keys.CARD_UUID: card.uuid,
        keys.CARD_POD: ",".join(f"{pod.namespace}/{pod.name}" for pod in pods),
        keys.CARD_PODS: ",".join(pod.uid for pod in pods),
    }


def card_of(lease: Document) -> CardRef | None:
    """The card that one of our Leases is for; None, if it is another sort of Lease."""
    head = _part(lease, "metadata")
    said = _part(head, "annotations")
    node, index = said.get(keys.CARD_NODE, ""), str(head.get("name", "")).rpartition("-")[2]
    if _part(head, "labels").get(keys.CARD_LEASE) != MANAGED or not node or not index.isdecimal():
        return None
    card = CardRef(node, int(index), said.get(keys.CARD_UUID, ""))
    return card if card.lease_name == head.get("name") else None


def holders_in(lease: Document) -> tuple[PodRef, ...]:
    """The pods that hold the card. Of a Lease that somebody wrote by hand the name may not be known."""
    said = _part(_part(lease, "metadata"), "annotations")
    holder = str(_part(lease, "spec").get("holderIdentity") or "")
    listed = _split(said.get(keys.CARD_PODS, ""))
    uids = listed if holder == SHARED or holder in listed else _split(holder)
    names = _split(said.get(keys.CARD_POD, "")) if uids == listed else []
    padded = (*names, *[""] * len(uids))
    return tuple(_pod(name, uid) for name, uid in zip(padded, uids, strict=False))


def is_shared(lease: Document) -> bool:
    return _part(lease, "spec").get("holderIdentity") == SHARED


def says_the_same(one: Document, other: Document) -> bool:
    """Whether both are held by the same pods in the same way."""

    def held(lease: Document) -> tuple[object, ...]:
        spec = _part(lease, "spec")
        return card_of(lease), holders_in(lease), spec.get("holderIdentity"), "leaseDurationSeconds" in spec

    return held(one) == held(other)


def _part(document: Document, name: str) -> Document:
    return document.get(name) or {}


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _pod(name: str, uid: str) -> PodRef:
    namespace, _, name = name.partition("/")
    return PodRef(namespace, name, uid)


def joined(pods: Iterable[PodRef], pod: PodRef) -> tuple[PodRef, ...]:
    """The pods with one more, each once."""
    return tuple({one.uid: one for one in (*pods, pod)}.values())
