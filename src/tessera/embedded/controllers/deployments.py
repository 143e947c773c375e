"""Deployments: one ReplicaSet for each template that was ever wanted, the newest in charge.

A ReplicaSet is found by its template, whoever made it, and named after a hash of it: a second one for the same template
would have the same name and be refused.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from tessera.embedded.controllers.deployment_status import is_complete, status_of, wait_s
from tessera.embedded.controllers.hashing import hash_of
from tessera.embedded.controllers.objects import DEPLOYMENTS, REPLICA_SETS, Deployment, ReplicaSet, refer
from tessera.embedded.controllers.rollouts import Scale, bounds_of, first_replicas, is_recreated, next_scales, stop_all
from tessera.embedded.controllers.writes import NONE, Create, Write, change, delete, put_status
from tessera.embedded.resources.parts import inside
from tessera.kube.objects import Document, ObjectKey

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
_NOT_HANDED_DOWN = frozenset((REVISION, DESIRED, MOST, "kubectl.kubernetes.io/last-applied-configuration"))
_KEPT_REVISIONS = 10


class Plan(NamedTuple):
    writes: Sequence[Write]
    again_s: float | None = None


def plan(deployment: Deployment, managed: Sequence[ReplicaSet], old_pods: int, now: datetime) -> Plan:
    """From its ReplicaSets, and how many pods of old ones are still about."""
    new = find_new(deployment, managed)
    old = [one for one in managed if one is not new]
    status = status_of(deployment, new, old, now)
    writes: list[Write] = []
    if not deployment.metadata.is_going:
        writes += _roll(deployment, new, old, old_pods)
        if is_complete(deployment, status):
            writes += _forget_old(deployment, old)
    revision = {REVISION: str(_revision(new))} if new and _revision(new) else NONE
    writes += put_status(DEPLOYMENTS, deployment.metadata, deployment.status, status, revision)
    return Plan(writes, wait_s(deployment, status, now))


def find_new(deployment: Deployment, managed: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The ReplicaSet that has the wanted template; the oldest, if there are several."""
    same = [one for one in managed if _without_hash(one.spec.template) == _without_hash(deployment.spec.template)]
    return min(same, key=lambda one: (one.metadata.creation_timestamp, one.metadata.name), default=None)


def _roll(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], old_pods: int) -> list[Write]:
    if deployment.spec.paused:
        return [] if new is None else _scale_all(deployment, _while_paused(deployment, new, old))
    revision = _next_revision(new, old)
    if new is None:
        waits = is_recreated(deployment) and (old_pods or stop_all(old))
        if waits:
            return _scale_all(deployment, stop_all(old))
        return [_make(deployment, old, revision)]
    writes = _hand_down(deployment, new, revision)
    return [*writes, *_scale_all(deployment, next_scales(deployment, new, old, old_pods))]


def _while_paused(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Scale]:
    """Nothing is rolled out; a wanted number that changes is followed where there is one ReplicaSet only."""
    if any(one.spec.replicas for one in old) or new.spec.replicas == deployment.spec.replicas:
        return []
    return [Scale(new, deployment.spec.replicas)]


def _make(deployment: Deployment, old: Sequence[ReplicaSet], revision: int) -> Create:
    metadata, spec = deployment.metadata, deployment.spec
    marked = {HASH_LABEL: hash_of(spec.template)}
    name = f"{metadata.name}-{marked[HASH_LABEL]}"
    selector = spec.selector or {}
    template_metadata = inside(spec.template, "metadata")
    labels = {**inside(template_metadata, "labels"), **marked}
    body: Document = {
        "metadata": {
            "name": name,
            "namespace": metadata.namespace,
            "labels": labels,
            "annotations": _handed_down(deployment, revision),
            "ownerReferences": [refer(DEPLOYMENTS, metadata)],
        },
        "spec": {
            "replicas": first_replicas(deployment, old),
            "minReadySeconds": spec.min_ready_seconds,
            "selector": {**selector, "matchLabels": {**inside(selector, "matchLabels"), **marked}},
            "template": {**spec.template, "metadata": {**template_metadata, "labels": labels}},
        },
    }
    return Create(REPLICA_SETS, ObjectKey(metadata.namespace, name), body)


def _handed_down(deployment: Deployment, revision: int) -> dict[str, str]:
    """The annotations of the ReplicaSet in charge."""
    own = {key: value for key, value in (deployment.metadata.annotations or {}).items() if key not in _NOT_HANDED_DOWN}
    return {**own, **_figures(deployment), REVISION: str(revision)}


def _figures(deployment: Deployment) -> dict[str, str]:
    replicas = deployment.spec.replicas
    return {DESIRED: str(replicas), MOST: str(replicas + bounds_of(deployment).surge)}


def _hand_down(deployment: Deployment, new: ReplicaSet, revision: int) -> list[Write]:
    """Let the ReplicaSet in charge say that it is."""
    wanted, min_ready_s = _handed_down(deployment, revision), deployment.spec.min_ready_seconds
    told = new.metadata.annotations or {}
    if new.spec.min_ready_seconds == min_ready_s and all(told.get(key) == value for key, value in wanted.items()):
        return []
    spec = {"minReadySeconds": min_ready_s}
    return [change(REPLICA_SETS, new.metadata, metadata={"annotations": wanted}, spec=spec)]


def _scale_all(deployment: Deployment, scales: Sequence[Scale]) -> list[Write]:
    figures = {"annotations": _figures(deployment)}
    return [
        change(REPLICA_SETS, one.replica_set.metadata, metadata=figures, spec={"replicas": one.replicas})
        for one in scales
    ]


def _forget_old(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[Write]:
    """Of the ReplicaSets without pods, as many are kept as the history may be long."""
    limit = deployment.spec.revision_history_limit
    empty = [one for one in old if not (one.spec.replicas or one.status.get("replicas") or one.metadata.is_going)]
    surplus = len(empty) - (_KEPT_REVISIONS if limit is None else limit)
    return [delete(REPLICA_SETS, one.metadata) for one in sorted(empty, key=_revision)[: max(0, surplus)]]


def _next_revision(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> int:
    """One more than any other has; the one in charge keeps its own while that is so."""
    last = max(map(_revision, old), default=0)
    return max(last + 1, _revision(new) if new else 0)


def _revision(replica_set: ReplicaSet) -> int:
    text = (replica_set.metadata.annotations or {}).get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def _without_hash(template: Document) -> Document:
    metadata = inside(template, "metadata")
    labels = {key: value for key, value in inside(metadata, "labels").items() if key != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}
