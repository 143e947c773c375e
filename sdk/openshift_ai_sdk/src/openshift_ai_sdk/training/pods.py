"""The pods of an MPIJob: found by the operator's labels, never by a guessed name; the launcher's has a random end."""

import re
from collections.abc import Mapping
from typing import Any, Optional

from . import api
from .documents import Document, mapping_at, mappings_at, text_at, time_at

JOB_NAME, JOB_ROLE = "training.kubeflow.org/job-name", "training.kubeflow.org/job-role"
Pod = Mapping[str, Any]


def list_pods(namespace: str, job: str, role: Optional[str] = None) -> list[Pod]:
    return mappings_at(api.get(api.in_namespace(namespace, "pods"), {"labelSelector": selector(job, role)}), "items")


def selector(job: str, role: Optional[str] = None) -> str:
    return f"{JOB_NAME}={job}" + (f",{JOB_ROLE}={role}" if role else "")


def oldest_first(found: Document) -> list[Pod]:
    """Those of a list as the API server answers it. Names break ties, so that the order is the same at each look."""
    return sorted(mappings_at(found, "items"), key=_age)


def newest(pods: list[Pod]) -> Optional[Pod]:
    """Of several launchers the last attempt."""
    return max(pods, key=_age, default=None)


def launchers(pods: list[Pod]) -> list[Pod]:
    return [pod for pod in pods if _role(pod) == "launcher"]


def workers(pods: list[Pod], job: str) -> list[Pod]:
    """In the order of their index."""
    found = [(index, pod) for pod in pods if (index := worker_index(pod, job)) is not None]
    return [pod for _, pod in sorted(found, key=lambda one: one[0])]


def worker_index(pod: Pod, job: str) -> Optional[int]:
    """By its name: the label counts from one where the launcher is a worker too."""
    match = re.fullmatch(rf"{re.escape(job)}-worker-([0-9]+)", name_of(pod))
    return int(match[1]) if match else None


def name_of(pod: Pod) -> str:
    return text_at(pod, "metadata", "name")


def uid_of(pod: Pod) -> str:
    return text_at(pod, "metadata", "uid")


def phase_of(pod: Pod) -> str:
    return text_at(pod, "status", "phase") or "Unknown"


def is_going(pod: Pod) -> bool:
    """Whether it was deleted, and has not ended yet."""
    return bool(text_at(pod, "metadata", "deletionTimestamp"))


def is_finished(pod: Pod) -> bool:
    return phase_of(pod) in ("Succeeded", "Failed")


def may_be_restarted(pod: Pod) -> bool:
    """Whether its containers are, when they end."""
    return text_at(pod, "spec", "restartPolicy") != "Never"


def mpi_container(pod: Pod) -> str:
    """The name of the one that runs MPI. A sidecar that something injected may stand beside it."""
    containers = [text_at(one, "name") for one in mappings_at(pod, "spec", "containers")]
    chosen = text_at(pod, "metadata", "annotations", "kubectl.kubernetes.io/default-container")
    return chosen if chosen in containers else containers[0] if containers else ""


def container_status(pod: Pod) -> Mapping[str, Any]:
    name = mpi_container(pod)
    statuses = [one for one in mappings_at(pod, "status", "containerStatuses") if one.get("name") == name]
    return statuses[0] if statuses else {}


def has_started(pod: Pod) -> bool:
    """Whether its log can be asked for."""
    status = container_status(pod)
    state, before = mapping_at(status, "state"), mapping_at(status, "lastState")
    return "running" in state or "terminated" in state or "terminated" in before


def worker_status(pod: Pod, index: int) -> dict[str, Any]:
    conditions = mappings_at(pod, "status", "conditions")
    return {
        "index": index,
        "name": name_of(pod),
        "phase": phase_of(pod),
        "node": text_at(pod, "spec", "nodeName") or None,
        "ready": any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions),
        "start_time": time_at(pod, "status", "startTime"),
    }


def _age(pod: Pod) -> tuple[str, str]:
    return text_at(pod, "metadata", "creationTimestamp"), name_of(pod)


def _role(pod: Pod) -> str:
    return text_at(mapping_at(pod, "metadata", "labels"), JOB_ROLE)
