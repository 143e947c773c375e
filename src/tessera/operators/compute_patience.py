"""How long the operator waits, and since when it has waited. What is remembered here is lost with the process; that
costs a few requests and seconds, and no word that a Compute says.
"""

import random
from collections.abc import Iterable
from datetime import UTC, datetime

from tessera.kube.objects import ObjectKey
from tessera.kube.timing import Backoff, Chance
from tessera.operators.compute_objects import Compute, ComputeStatus
from tessera.operators.compute_pods import IMAGE_PULL_FAILED, ComputePod, count_calm_restarts, is_pulling_in_vain
from tessera.operators.compute_status import READY, ROUTED, STALLED

SETTLED_S = 60.0
"""How often a Compute is looked at when nothing tells us to: a Secret that was removed is told by nobody."""
UNSETTLED = Backoff(first_s=1.0, most_s=10.0, jitter=0.2)
SPREAD = 0.25
LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Pace:
    """When to look at a Compute again that nothing has been told of: soon where something has just gone wrong."""

    def __init__(self, chance: Chance = random.random) -> None:
        self._chance = chance
        self._standing: dict[ObjectKey, tuple[object, int]] = {}

    def wait_s(self, compute: ObjectKey, status: ComputeStatus) -> float:
        trouble = _word_of_trouble(status)
        if trouble is None:
            self.forget(compute)
            return SETTLED_S * (1 - SPREAD + 2 * SPREAD * self._chance())
        before, looks = self._standing.get(compute, (None, 0))
        looks = looks + 1 if before == trouble else 1
        self._standing[compute] = (trouble, looks)
        return UNSETTLED.wait_s(looks, self._chance)

    def forget(self, compute: ObjectKey) -> None:
        self._standing.pop(compute, None)


class Pulls:
    """Since when the images of pods cannot be had. Events of pods tell it too, but would have to be asked for."""

    def __init__(self) -> None:
        self._since: dict[ObjectKey, dict[str, datetime]] = {}

    def failed_since(self, compute: Compute, pods: Iterable[ComputePod], now: datetime) -> datetime | None:
        known = self._since.pop(compute.key, {})
        first = LONG_AGO if _was_given_up(compute) else now
        failing = (pod.metadata.uid or "" for pod in pods if is_pulling_in_vain(pod))
        since = {uid: known.get(uid, first) for uid in failing}
        if since:
            self._since[compute.key] = since
        return min(since.values(), default=None)

    def forget(self, compute: ObjectKey) -> None:
        self._since.pop(compute, None)


class Restarts:
    """Those of a pod that were before its server last ran for long: a kubelet counts them over the pod's whole life."""

    def __init__(self) -> None:
        self._calm: dict[ObjectKey, dict[str, int]] = {}

    def count_calm(self, compute: ObjectKey, pods: Iterable[ComputePod], now: datetime) -> int:
        known = self._calm.pop(compute, {})
        counts = {pod.metadata.uid or "": count_calm_restarts(pod, now) for pod in pods}
        calm = {uid: most for uid, count in counts.items() if (most := max(count, known.get(uid, 0)))}
        if calm:
            self._calm[compute] = calm
        return max(calm.values(), default=0)

    def forget(self, compute: ObjectKey) -> None:
        self._calm.pop(compute, None)


def _was_given_up(compute: Compute) -> bool:
    """By whoever looked after it before us, for the same spec."""
    return any(
        (one.type, one.status, one.reason) == (STALLED, "True", IMAGE_PULL_FAILED)
        and one.observed_generation == compute.metadata.generation
        for one in compute.status.conditions or ()
    )


def _word_of_trouble(status: ComputeStatus) -> object:
    """What stands in the way, or None where a Compute is as it should be."""
    said = {one.type: (one.status, one.reason) for one in status.conditions or ()}
    is_settled = said[READY][0] == "True" or said[READY][1] == "Suspended"
    if is_settled and said[STALLED][0] != "True" and said.get(ROUTED, ("True",))[0] == "True":
        return None
    return said[READY], said[STALLED], said.get(ROUTED)
