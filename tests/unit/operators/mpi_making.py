"""MPIJobs and their pods, as the API server would hand them out."""

from typing import Any

import msgspec

from tessera.kube.objects import Document
from tessera.operators.mpi_objects import MpiJob
from tessera.operators.mpi_pods import MpiPod
from tessera.operators.mpi_templates import MpiSettings

SETTINGS = MpiSettings(first="/p/first", last="/p/last", boards="/boards")
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def a_job(name: str = "fit", *, workers: int | None = 2, **changes: Any) -> MpiJob:
    """`changes` replace parts of its spec, `status` and `metadata` aside."""
    metadata = {"name": name, "namespace": "lab", "uid": "u-1", **changes.pop("metadata", {})}
    status = changes.pop("status", {})
    replicas: Document = {"Launcher": _replica(["mpirun", "-np", "2", "train"])}
    if workers is not None:
        replicas["Worker"] = {**_replica([]), "replicas": workers}
    spec = {"mpiReplicaSpecs": replicas, **changes}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, MpiJob)


def _replica(command: list[str]) -> Document:
    container = {"name": "main", "image": "some-image", **({"command": command} if command else {})}
    return {"replicas": 1, "template": {"spec": {"containers": [container]}}}


def a_pod(name: str, phase: str = "Running", **status: Any) -> MpiPod:
    metadata = {"name": name, "namespace": "lab", "uid": f"uid-{name}", "creationTimestamp": NOW}
    return msgspec.convert({"metadata": metadata, "status": {"phase": phase, **status}}, MpiPod)


def a_launcher(*conditions: Document, **status: Any) -> Document:
    """The Job of a launcher."""
    return {"metadata": {"name": "fit-launcher", "uid": "j-1"}, "status": {"conditions": [*conditions], **status}}
