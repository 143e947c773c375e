"""What a Deployment says of itself: how many pods it has, whether that is enough, and whether it gets anywhere."""

from collections.abc import Sequence
from datetime import datetime

from tessera.embedded.controllers.conditions import (
    Said,
    find_condition,
    with_condition,
    without_condition,
)
from tessera.embedded.controllers.objects import Deployment, ReplicaSet
from tessera.embedded.controllers.rollouts import bounds_of
from tessera.embedded.controllers.times import seconds_since, write_time
from tessera.kube.objects import Document

_UPDATED = "lastUpdateTime"
_NO_DEADLINE = 2**31 - 1


def status_of(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: datetime) -> Document:
    every = [*old, *([new] if new else [])]
    replicas = _sum(every, "replicas")
    available = _sum(every, "availableReplicas")
    figures = {
        "replicas": replicas,
        "updatedReplicas": new.status.get("replicas", 0) if new else 0,
        "readyReplicas": _sum(every, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, max(replicas, deployment.spec.replicas) - available),
    }
    status: Document = {name: count for name, count in figures.items() if count}
    status["observedGeneration"] = deployment.metadata.generation
    if "collisionCount" in deployment.status:
        status["collisionCount"] = deployment.status["collisionCount"]
    status["conditions"] = _conditions(deployment, new, every, status, now)
    return status


def is_complete(deployment: Deployment, status: Document) -> bool:
    """Every pod is new and available, and no other is left."""
    wanted = deployment.spec.replicas
    counted = ("replicas", "updatedReplicas", "availableReplicas")
    return all(status.get(name, 0) == wanted for name in counted)


def wait_s(deployment: Deployment, status: Document, now: datetime) -> float | None:
    """How long until it has to be said that nothing moves any more."""
    progressing = find_condition(status["conditions"], "Progressing")
    if progressing is None or progressing["status"] != "True" or is_complete(deployment, status):
        return None
    return max(0.1, _deadline_s(deployment) - seconds_since(progressing[_UPDATED], now))


def _conditions(
    deployment: Deployment, new: ReplicaSet | None, every: Sequence[ReplicaSet], status: Document, now: datetime
) -> list[Document]:
    at = write_time(now)
    conditions = _with_failure(deployment.status.get("conditions") or [], every, at)
    conditions = with_condition(conditions, _availability(deployment, status), at, _UPDATED)
    progress = _progress(deployment, new, status, now)
    if progress is None:
        return conditions
    if _has_moved(deployment.status, status) and progress.reason == "ReplicaSetUpdated":
        former = find_condition(conditions, progress.type)
        began = former["lastTransitionTime"] if former and former["status"] == progress.status else at
        entry = {**progress._asdict(), "lastTransitionTime": began, _UPDATED: at}
        return [*without_condition(conditions, progress.type), entry]
    return with_condition(conditions, progress, at, _UPDATED)


def _with_failure(conditions: list[Document], every: Sequence[ReplicaSet], at: str) -> list[Document]:
    failures = [find_condition(one.status.get("conditions"), "ReplicaFailure") for one in every]
    failure = next((one for one in failures if one is not None), None)
    if failure is None:
        return without_condition(conditions, "ReplicaFailure")
    said = Said("ReplicaFailure", failure["status"], failure.get("reason", ""), failure.get("message", ""))
    return with_condition(conditions, said, at, _UPDATED)


def _availability(deployment: Deployment, status: Document) -> Said:
    least = deployment.spec.replicas - bounds_of(deployment).unavailable
    if status.get("availableReplicas", 0) >= least:
        return Said("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    message = "Deployment does not have minimum availability."
    return Said("Available", "False", "MinimumReplicasUnavailable", message)


def _progress(deployment: Deployment, new: ReplicaSet | None, status: Document, now: datetime) -> Said | None:
    """None leaves what was said before."""
    if deployment.spec.paused:
        return Said("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
    if new is None:
        return None
    what = f'ReplicaSet "{new.metadata.name}"'
    if is_complete(deployment, status):
        return Said("Progressing", "True", "NewReplicaSetAvailable", f"{what} has successfully progressed.")
    former = find_condition(deployment.status.get("conditions"), "Progressing")
    if former is None:
        return Said("Progressing", "True", "NewReplicaSetCreated", f'Created new replica set "{new.metadata.name}"')
    if _has_moved(deployment.status, status) or former["reason"] in ("NewReplicaSetAvailable", "DeploymentPaused"):
        return Said("Progressing", "True", "ReplicaSetUpdated", f"{what} is progressing.")
    if seconds_since(former[_UPDATED], now) >= _deadline_s(deployment):
        return Said("Progressing", "False", "ProgressDeadlineExceeded", f"{what} has timed out progressing.")
    return None


def _has_moved(before: Document, after: Document) -> bool:
    """More pods are new, ready or available, or fewer are old."""
    more = any(after.get(name, 0) > before.get(name, 0) for name in _GROWING)
    return more or _old_pods(after) < _old_pods(before)


_GROWING = ("updatedReplicas", "readyReplicas", "availableReplicas")


def _old_pods(status: Document) -> int:
    return status.get("replicas", 0) - status.get("updatedReplicas", 0)


def _deadline_s(deployment: Deployment) -> int:
    limit = deployment.spec.progress_deadline_seconds
    return _NO_DEADLINE if limit is None else limit


def _sum(replica_sets: Sequence[ReplicaSet], figure: str) -> int:
    return sum(one.status.get(figure, 0) for one in replica_sets)
