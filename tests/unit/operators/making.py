"""Claims, gangs, pods and leases of cards, made of what a test wants to say about them."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from tessera.kube.pods import Pod
from tessera.model.annotations.keys import CLAIM, CLAIMED, GANG, PIN
from tessera.model.card_leases import CardRef, Hold, lease_for
from tessera.model.requests import PodRef
from tessera.operators.objects import Claim, ClaimStatus, Gang

CARDS = "GPU-0,NVIDIA,81920,100:"


def a_claim(status: ClaimStatus | None = None, gang: str = "", **devices: Any) -> Claim:
    spec: dict[str, Any] = {"devices": {"count": 1, **devices}, **({"gangRef": gang} if gang else {})}
    metadata = {"name": "training", "namespace": "ml", "uid": "claim-uid", "resourceVersion": "7", "generation": 3}
    said = msgspec.to_builtins(status) if status else {}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": said}, Claim)


def a_gang(min_member: int) -> Gang:
    return msgspec.convert({"metadata": {"name": "pair", "namespace": "ml"}, "spec": {"minMember": min_member}}, Gang)


def a_pod(
    name: str = "web",
    *,
    node: str = "",
    allocated: str = "",
    phase: str = "Pending",
    says: str = "",
    created: str = "2026-01-01T00:00:00Z",
    gang: str = "",
    pin: str = "",
    deleted: str | None = None,
) -> Pod:
    """`allocated` is what the scheduler wrote beside the cards, `pin` what the user wants, `says` why it waits."""
    annotations = {CLAIM: "training"}
    if allocated:
        annotations |= {PIN: allocated, CLAIMED: CARDS}
    annotations |= {PIN: pin} if pin else {}
    annotations |= {GANG: gang} if gang else {}
    conditions = [{"type": "PodScheduled", "status": "False", "message": says}] if says else []
    metadata = {"name": name, "namespace": "ml", "uid": f"uid-{name}", "creationTimestamp": created}
    metadata |= {"deletionTimestamp": deleted} if deleted else {}
    document = {
        "metadata": {**metadata, "annotations": annotations},
        "spec": {"containers": [{"name": "main"}], **({"nodeName": node} if node else {})},
        "status": {"phase": phase, "conditions": conditions},
    }
    return msgspec.convert(document, Pod)


def a_bound_pod(name: str = "web", allocated: str = "node-a:0,1", **more: Any) -> Pod:
    return a_pod(name, node=allocated.partition(":")[0], allocated=allocated, phase="Running", **more)


def a_lease(card: str, *holders: str, node: str = "node-a") -> dict[str, Any]:
    """The lease of card `0` is `gpu-node-a-0`; several holders share it."""
    pods = tuple(PodRef("ml", uid.removeprefix("uid-"), uid) for uid in holders)
    hold = Hold(pods, is_shared=len(pods) > 1)
    return lease_for(CardRef(node, int(card), f"GPU-{card}"), hold, datetime(2026, 1, 1, tzinfo=UTC))
