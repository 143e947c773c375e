"""What a kubelet would say of a node, said of one that is this machine. Pure."""

import platform
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

import tessera
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.runtime.addresses import NODE_ADDRESS
from tessera.embedded.runtime.parts import part

HOST: Mapping[str, str] = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110"}
"""More than this machine may have: simulated nodes run little, and samples ask for much."""
RUNTIME = "tessera://"
"""How the runtime of our nodes is called, before its version."""
CONDITIONS = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}
Shares = Mapping[str, tuple[int, int]]
"""By resource: how many there are, and how many of them are healthy."""


def new_node(name: str) -> Document:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": _architecture()}
    return {"metadata": {"name": name, "labels": labels}}


def node_status(name: str, shares: Shares, now: datetime) -> Document:
    return {
        "capacity": {**HOST, **{resource: str(total) for resource, (total, _) in shares.items()}},
        "allocatable": {**HOST, **{resource: str(healthy) for resource, (_, healthy) in shares.items()}},
        "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}, {"type": "Hostname", "address": name}],
        "nodeInfo": {
            "architecture": _architecture(),
            "bootID": "",
            "containerRuntimeVersion": f"{RUNTIME}{tessera.__version__}",
            "kernelVersion": platform.release(),
            "kubeProxyVersion": "",
            "kubeletVersion": f"v{tessera.__version__}",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "this machine",
            "systemUUID": "",
        },
        "conditions": [_condition(kind, now) for kind in CONDITIONS],
    }


def unsaid(node: Frozen, wanted: Frozen) -> Document:
    """The parts of a status that the node's own does not say. What it says besides is somebody else's."""
    status = part(node, "status")
    return {field: value for field, value in wanted.items() if not _says(field, status.get(field), value)}


def is_ours(node: Frozen) -> bool:
    """Whether an engine like this one made the node."""
    runtime: str = part(node, "status", "nodeInfo").get("containerRuntimeVersion", "")
    return runtime.startswith(RUNTIME)


def _says(field: str, said: Any, wanted: Any) -> bool:
    if field == "conditions":
        said, wanted = _statuses(said), _statuses(wanted)
    if isinstance(said, dict) and isinstance(wanted, dict):
        return cast("Document", said) | cast("Document", wanted) == said
    return said == wanted


def _statuses(conditions: list[Document] | None) -> dict[str, str]:
    return {one["type"]: one["status"] for one in conditions or ()}


def _condition(kind: str, now: datetime) -> Document:
    status, reason, message = CONDITIONS[kind]
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"type": kind, "status": status, "reason": reason, "message": message}
    return {**told, "lastHeartbeatTime": at, "lastTransitionTime": at}


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
