"""ReplicaSets: as many pods like this one as are wanted, no matter which."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from tessera.embedded.controllers.conditions import Said, with_condition, without_condition
from tessera.embedded.controllers.objects import REPLICA_SETS, ReplicaSet
from tessera.embedded.controllers.pods import Pod, importance, is_available, make_pod, named, unavailable_for_s
from tessera.embedded.controllers.times import write_time
from tessera.embedded.resources.label_selectors import matches
from tessera.embedded.resources.parts import inside
from tessera.kube.objects import Document

MOST_AT_ONCE = 500


class Change(NamedTuple):
    make: Sequence[Document] = ()
    remove: Sequence[Pod] = ()


def plan(replica_set: ReplicaSet, pods: Sequence[Pod], suffixes: Iterator[str]) -> Change:
    """From the pods that it manages. Those that have ended or are going do not count."""
    if replica_set.metadata.is_going:
        return Change()
    active = [pod for pod in pods if pod.is_active]
    missing = replica_set.spec.replicas - len(active)
    if missing >= 0:
        return Change(make=[_make(replica_set, next(suffixes)) for _ in range(min(missing, MOST_AT_ONCE))])
    return Change(remove=sorted(active, key=importance)[: min(-missing, MOST_AT_ONCE)])


def status_of(replica_set: ReplicaSet, pods: Sequence[Pod], refusal: str | None, now: datetime) -> Document:
    """`refusal` is why a pod could not be made just now."""
    active = [pod for pod in pods if pod.is_active]
    labels = {"matchLabels": inside(inside(replica_set.spec.template, "metadata"), "labels")}
    min_ready_s = replica_set.spec.min_ready_seconds
    counted = {
        "fullyLabeledReplicas": sum(matches(labels, pod.metadata.labels) for pod in active),
        "readyReplicas": sum(pod.is_ready for pod in active),
        "availableReplicas": sum(is_available(pod, min_ready_s, now) for pod in active),
    }
    status: Document = {"replicas": len(active), "observedGeneration": replica_set.metadata.generation}
    status |= {name: count for name, count in counted.items() if count}
    former = replica_set.status.get("conditions")
    if refusal is None:
        conditions = without_condition(former, "ReplicaFailure")
    else:
        said = Said("ReplicaFailure", "True", "FailedCreate", refusal)
        conditions = with_condition(former, said, write_time(now))
    return status | ({"conditions": conditions} if conditions else {})


def next_available_s(pods: Sequence[Pod], min_ready_s: int, now: datetime) -> float | None:
    """When the next pod that is ready will have been so for long enough."""
    waits = (unavailable_for_s(pod, min_ready_s, now) for pod in pods if pod.is_active)
    return min((wait for wait in waits if wait), default=None)


def _make(replica_set: ReplicaSet, suffix: str) -> Document:
    name = named(f"{replica_set.metadata.name}-", suffix)
    return make_pod(replica_set.spec.template, REPLICA_SETS, replica_set.metadata, **name)
