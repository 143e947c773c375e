"""Computes, their StatefulSets, pods and events, made of what a test wants to say about them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tessera.operators.compute_objects import MANAGER, Compute, ComputeStatus
from tessera.operators.compute_pods import ComputePod
from tessera.operators.compute_refusals import Event
from tessera.operators.objects import Condition

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OLD, PRESENT = "demo-1", "demo-2"


def a_compute(
    name: str = "demo", *, annotations: dict[str, str] | None = None, spec: Any = None, **more: Any
) -> Compute:
    """`annotations` are its own; those of its pod are in `spec`."""
    metadata = {"name": name, "namespace": "ml", "uid": "u-1", "generation": 4, "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": {**(spec or {}), **more}}, Compute)


def saying(compute: Compute, *conditions: Condition, **status: Any) -> Compute:
    """The same with this said of it."""
    return msgspec.structs.replace(compute, status=ComputeStatus(conditions=conditions, **status))


def a_set(
    *, replicas: int = 1, made: int = 1, ready: int = 0, updated: int = 1, seen: int = 3, changed_at: datetime = NOW
) -> Any:
    """Of generation 3. `seen` is the generation that its controller has looked at."""
    managed = [{"manager": MANAGER, "operation": "Apply", "time": changed_at.isoformat()}]
    status = {"observedGeneration": seen, "updateRevision": PRESENT}
    status |= {"replicas": made, "readyReplicas": ready, "updatedReplicas": updated}
    metadata = {"name": "demo", "uid": "s-1", "generation": 3, "managedFields": managed}
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": status}


def a_pod(
    name: str = "demo-0", *, revision: str = PRESENT, deleted: bool = False, spec: Any = None, **status: Any
) -> ComputePod:
    metadata: dict[str, Any] = {"name": name, "labels": {"controller-revision-hash": revision}}
    metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, ComputePod)


def waiting(reason: str, message: str = "", **more: Any) -> ComputePod:
    return serving(waiting={"reason": reason, "message": message}, **more)


def serving(*, ready: bool = False, restarts: int = 0, last: Any = None, **state: Any) -> ComputePod:
    told = {"name": "server", "ready": ready, "restartCount": restarts, "state": state, "lastState": last or {}}
    return a_pod(containerStatuses=[told])


def ended(code: int = 1, reason: str = "Error", message: str = "", *, after_minutes: float = 0.1) -> Any:
    """After it ran for so long."""
    times = {
        "startedAt": (NOW - timedelta(minutes=after_minutes + 1)).isoformat(),
        "finishedAt": (NOW - timedelta(minutes=1)).isoformat(),
    }
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, **times}}


def running_for(minutes: float) -> Any:
    return {"startedAt": (NOW - timedelta(minutes=minutes)).isoformat()}


def unplaced(message: str, reason: str = "Unschedulable", spec: Any = None, *, for_s: float = 60) -> ComputePod:
    said = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    said |= {"lastTransitionTime": (NOW - timedelta(seconds=for_s)).isoformat()}
    return a_pod(conditions=[said], spec=spec)


def told(reason: str, message: str = "", *, after_s: float = 1, version: int = 1) -> Event:
    """An event, so long after the last change of the StatefulSet."""
    document = {
        "metadata": {"name": f"e-{version}", "resourceVersion": str(version)},
        "reason": reason,
        "message": message,
        "lastTimestamp": (NOW + timedelta(seconds=after_s)).isoformat(),
    }
    return msgspec.convert(document, Event)
