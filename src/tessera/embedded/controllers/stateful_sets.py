"""StatefulSets: pods with numbers, each of which has a name, a place and a turn of its own.

With OrderedReady each waits for the one before it; with Parallel nobody waits. Pods of an older template are replaced
from the highest number down, one at a time. A template is known by its hash, on the pods; earlier templates are not
kept, so that a pod below `partition` that has to be made anew gets the present one.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from tessera.embedded.controllers.hashing import hash_of
from tessera.embedded.controllers.objects import STATEFUL_SETS, StatefulSet
from tessera.embedded.controllers.pods import ENDED, PODS, Pod, is_available, make_pod
from tessera.embedded.controllers.writes import Create, Write, delete
from tessera.embedded.resources.parts import inside
from tessera.kube.objects import Document, ObjectKey

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
REVISION = "controller-revision-hash"


class Places(NamedTuple):
    """The pods by their numbers: those that should be, and those that are too many."""

    wanted: dict[int, Pod | None]
    surplus: dict[int, Pod]


def plan(stateful_set: StatefulSet, pods: Sequence[Pod], now: datetime) -> list[Write]:
    """What is to be done next, from the pods that it manages."""
    if stateful_set.metadata.is_going:
        return []
    places = _places(stateful_set, pods)
    is_parallel = stateful_set.spec.pod_management_policy == "Parallel"
    filling: list[Write] = []
    for number, pod in places.wanted.items():
        filling += _fill(stateful_set, number, pod)
        if not is_parallel and not _is_settled(stateful_set, pod, now):
            return filling
    if is_parallel:
        filling += [delete(PODS, pod.metadata) for pod in places.surplus.values() if not pod.metadata.is_going]
    elif places.surplus:
        last = places.surplus[max(places.surplus)]
        return [] if last.metadata.is_going else [delete(PODS, last.metadata)]
    return filling or _renew(stateful_set, places.wanted, now)


def status_of(stateful_set: StatefulSet, pods: Sequence[Pod], now: datetime) -> Document:
    update = revision_of(stateful_set)
    current = stateful_set.status.get("currentRevision") or update
    updated = sum(_revision(pod) == update for pod in pods)
    ready = [pod for pod in pods if pod.is_ready and pod.status.phase == "Running" and not pod.metadata.is_going]
    if updated == len(pods) == len(ready) == stateful_set.spec.replicas:
        current = update
    min_ready_s = stateful_set.spec.min_ready_seconds
    figures = {
        "readyReplicas": len(ready),
        "currentReplicas": sum(_revision(pod) == current for pod in pods),
        "updatedReplicas": updated,
    }
    return {
        "replicas": len(pods),
        **{name: figure for name, figure in figures.items() if figure},
        "availableReplicas": sum(is_available(pod, min_ready_s, now) for pod in ready),
        "observedGeneration": stateful_set.metadata.generation,
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": 0,
    }


def revision_of(stateful_set: StatefulSet) -> str:
    return f"{stateful_set.metadata.name}-{hash_of(stateful_set.spec.template)}"


def _places(stateful_set: StatefulSet, pods: Sequence[Pod]) -> Places:
    start: int = (stateful_set.spec.ordinals or {}).get("start", 0)
    by_number = {number: pod for pod in pods if (number := _number(stateful_set, pod)) is not None}
    wanted = range(start, start + stateful_set.spec.replicas)
    surplus = {number: pod for number, pod in by_number.items() if number not in wanted}
    return Places({number: by_number.get(number) for number in wanted}, surplus)


def _number(stateful_set: StatefulSet, pod: Pod) -> int | None:
    prefix, _, number = pod.metadata.name.rpartition("-")
    return int(number) if prefix == stateful_set.metadata.name and number.isdecimal() else None


def _fill(stateful_set: StatefulSet, number: int, pod: Pod | None) -> list[Write]:
    """A pod for an empty place; one that has ended makes room first."""
    if pod is None:
        return [_make(stateful_set, number)]
    if pod.status.phase in ENDED and not pod.metadata.is_going:
        return [delete(PODS, pod.metadata)]
    return []


def _is_settled(stateful_set: StatefulSet, pod: Pod | None, now: datetime) -> bool:
    """Whether the next one may come."""
    return pod is not None and pod.is_active and is_available(pod, stateful_set.spec.min_ready_seconds, now)


def _renew(stateful_set: StatefulSet, wanted: dict[int, Pod | None], now: datetime) -> list[Write]:
    """Replace the last pod that has an older template, if all after it are there and well."""
    strategy = stateful_set.spec.update_strategy
    if strategy.get("type") == "OnDelete":
        return []
    partition: int = inside(strategy, "rollingUpdate").get("partition", 0)
    for number in sorted(wanted, reverse=True):
        pod = wanted[number]
        if number < partition or pod is None:
            return []
        if _revision(pod) != revision_of(stateful_set):
            return [] if pod.metadata.is_going else [delete(PODS, pod.metadata)]
        if not _is_settled(stateful_set, pod, now):
            return []
    return []


def _make(stateful_set: StatefulSet, number: int) -> Create:
    metadata = stateful_set.metadata
    name = f"{metadata.name}-{number}"
    labels = {POD_NAME: name, POD_INDEX: str(number), REVISION: revision_of(stateful_set)}
    pod = make_pod(
        stateful_set.spec.template,
        STATEFUL_SETS,
        metadata,
        name=name,
        generateName=f"{metadata.name}-",
        labels=labels,
    )
    spec = {**pod["spec"], "hostname": name, "subdomain": stateful_set.spec.service_name}
    return Create(PODS, ObjectKey(metadata.namespace, name), {**pod, "spec": spec})


def _revision(pod: Pod) -> str:
    return (pod.metadata.labels or {}).get(REVISION, "")
