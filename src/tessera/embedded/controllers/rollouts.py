"""How a Deployment moves from old pods to new ones: how many each ReplicaSet should have next.

Each step is decided from what is there now, so that it can be the first, the last or a repetition. When the wanted
number changes half-way, the new pods make up the difference; Kubernetes would spread it over old ones too.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tessera.embedded.controllers.objects import Deployment, ReplicaSet
from tessera.embedded.resources.parts import inside


class Bounds(NamedTuple):
    """How far a rollout may be from the wanted number, above and below."""

    surge: int
    unavailable: int


class Scale(NamedTuple):
    replica_set: ReplicaSet
    replicas: int


def bounds_of(deployment: Deployment) -> Bounds:
    """Percentages of what can be more are rounded up, of what can be fewer down; both 0 would stand still."""
    rolling = inside(deployment.spec.strategy, "rollingUpdate")
    replicas = deployment.spec.replicas
    if is_recreated(deployment):
        return Bounds(0, 0)
    surge = amount_of(rolling.get("maxSurge", "25%"), replicas, rounds_up=True)
    unavailable = amount_of(rolling.get("maxUnavailable", "25%"), replicas, rounds_up=False)
    return Bounds(surge, min(unavailable, replicas) if surge or unavailable else 1)


def amount_of(value: int | str, whole: int, *, rounds_up: bool) -> int:
    """A number, or a percentage of the whole."""
    if isinstance(value, int):
        return value
    exact = int(value.removesuffix("%")) * whole / 100
    return math.ceil(exact) if rounds_up else math.floor(exact)


def is_recreated(deployment: Deployment) -> bool:
    return deployment.spec.strategy.get("type") == "Recreate"


def first_replicas(deployment: Deployment, old: Sequence[ReplicaSet]) -> int:
    """With how many pods a new ReplicaSet begins."""
    room = deployment.spec.replicas + bounds_of(deployment).surge - wanted_by(old)
    return max(0, min(deployment.spec.replicas, room))


def next_scales(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet], old_pods: int) -> list[Scale]:
    """What to change now; `old_pods` counts the pods of old ReplicaSets that still work or are only going."""
    if is_recreated(deployment):
        return _recreate(deployment, new, old, old_pods)
    return _scale_new(deployment, new, old) or _scale_down_old(deployment, new, old)


def stop_all(replica_sets: Sequence[ReplicaSet]) -> list[Scale]:
    return [Scale(one, 0) for one in replica_sets if one.spec.replicas]


def wanted_by(replica_sets: Sequence[ReplicaSet]) -> int:
    return sum(one.spec.replicas for one in replica_sets)


def available_in(replica_sets: Sequence[ReplicaSet]) -> int:
    return sum(one.status.get("availableReplicas", 0) for one in replica_sets)


def _recreate(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet], old_pods: int) -> list[Scale]:
    stopping = stop_all(old)
    if stopping or old_pods or new.spec.replicas == deployment.spec.replicas:
        return stopping
    return [Scale(new, deployment.spec.replicas)]


def _scale_new(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Scale]:
    wanted, now = deployment.spec.replicas, new.spec.replicas
    if now > wanted:
        return [Scale(new, wanted)]
    room = wanted + bounds_of(deployment).surge - wanted_by(old) - now
    more = min(room, wanted - now)
    return [Scale(new, now + more)] if more > 0 else []


def _scale_down_old(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Scale]:
    """Pods that are not available go first; of the others, as many as leave enough that are."""
    least = deployment.spec.replicas - bounds_of(deployment).unavailable
    new_unavailable = new.spec.replicas - new.status.get("availableReplicas", 0)
    spare = wanted_by([*old, new]) - least - new_unavailable
    if spare <= 0:
        return []
    left = {one.metadata.uid: one.spec.replicas for one in old}
    for one in _oldest_first(old):
        broken = one.spec.replicas - one.status.get("availableReplicas", 0)
        taken = max(0, min(spare, broken))
        left[one.metadata.uid] -= taken
        spare -= taken
    spare = min(spare, available_in([*old, new]) - least)
    for one in _oldest_first(old):
        taken = max(0, min(spare, left[one.metadata.uid]))
        left[one.metadata.uid] -= taken
        spare -= taken
    return [Scale(one, left[one.metadata.uid]) for one in old if left[one.metadata.uid] != one.spec.replicas]


def _oldest_first(replica_sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    return sorted(replica_sets, key=lambda one: (one.metadata.creation_timestamp, one.metadata.name))
