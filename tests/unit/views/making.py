"""Documents as the API server has them, and views of them; every figure that a test cares about is an argument."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations.allocations import encode_containers
from tessera.model.nodes import read_node
from tessera.vendors.loading import load_catalogue
from tessera.views.documents import ViewedEvent, ViewedLease, ViewedNode, ViewedPod
from tessera.views.holdings import Holding, read_holdings
from testbed.node_documents import NodeShape, registered_node

CATALOGUE = load_catalogue()
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
HANDSHAKE = "hami.io/node-handshake"
ALLOCATED = "hami.io/vgpu-devices-allocated"
TWO_CARDS = "2xA100-SXM4-80GB"


def ago(**duration: float) -> str:
    return (NOW - timedelta(**duration)).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_node(
    name: str = "gpu-a",
    cards: str = TWO_CARDS,
    *,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **changes: Any,
) -> ViewedNode:
    """A node that has registered its cards and shook hands a minute ago; an annotation of "" is taken away."""
    document = registered_node(name, NodeShape(cards, labels=labels or {"gpu": "on"}), CATALOGUE)
    said = document["metadata"]["annotations"]
    said |= {HANDSHAKE: f"Reported {ago(minutes=1)}", **(annotations or {})}
    document["metadata"]["annotations"] = {key: value for key, value in said.items() if value}
    return msgspec.convert({**document, **changes}, ViewedNode)


def uuids_of(node: ViewedNode) -> list[str]:
    return [card.uuid for card in read_node(node, CATALOGUE).node.devices]


def a_pod(
    name: str = "train",
    *,
    namespace: str = "default",
    limits: Mapping[str, str] | None = None,
    node: str = "",
    cards: Mapping[str, int] | None = None,
    phase: str = "",
    conditions: list[dict[str, Any]] | None = None,
    spec: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> ViewedPod:
    """A pod of one container; `cards` are the MiB that it holds of each card by UUID."""
    asked = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000"} if limits is None else limits
    shares = tuple(
        CardShare(uuid=uuid, vendor="NVIDIA", memory_mib=mib, cores_percent=0) for uuid, mib in (cards or {}).items()
    )
    given = {ALLOCATED: encode_containers(Allocation(node, (shares,)).containers)} if shares else {}
    document = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "creationTimestamp": ago(minutes=10),
            "annotations": given,
            **(metadata or {}),
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"limits": dict(asked)}}],
            **({"nodeName": node} if node else {}),
            **(spec or {}),
        },
        "status": {
            "phase": phase or ("Running" if node else "Pending"),
            "conditions": conditions or [],
            **(status or {}),
        },
    }
    return msgspec.convert(document, ViewedPod)


def held(*pods: ViewedPod) -> tuple[Holding, ...]:
    return read_holdings(pods, CATALOGUE)


def unscheduled(message: str, **since: float) -> list[dict[str, Any]]:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return [{**said, "lastTransitionTime": ago(**(since or {"minutes": 9}))}]


def an_event(pod: str, message: str, *, reason: str = "FilteringFailed", **since: float) -> ViewedEvent:
    document = {
        "metadata": {"name": f"{pod}.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "uid": f"uid-{pod}"},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": ago(**(since or {"minutes": 1})),
    }
    return msgspec.convert(document, ViewedEvent)


def an_agent_lease(node: str, **since: float) -> ViewedLease:
    document = {
        "metadata": {"name": f"tessera-agent-{node}", "annotations": {"tessera.io/node": node}},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": ago(**(since or {"seconds": 5}))},
    }
    return msgspec.convert(document, ViewedLease)
