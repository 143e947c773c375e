"""PodDisruptionBudgets: how many pods may be evicted now.

An eviction that was let through is noted in the budget by the API server. Until the pod is seen to go it counts as
gone, or two evictions would share what one may take.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from tessera.embedded.controllers.conditions import Said, with_condition
from tessera.embedded.controllers.objects import Budget
from tessera.embedded.controllers.pods import ENDED, Pod
from tessera.embedded.controllers.rollouts import amount_of
from tessera.embedded.controllers.times import seconds_since, write_time
from tessera.kube.objects import Document

EVICTION_S = 120.0
"""A pod that was let go and is still there after this long was not evicted after all."""


def status_of(budget: Budget, pods: Sequence[Pod], scales: Mapping[str, int], now: datetime) -> Document:
    """From the pods that it selects, and how many pods each of their controllers wants, by uid."""
    counted = [pod for pod in pods if pod.status.phase not in ENDED]
    leaving = _still_leaving(budget, counted, now)
    healthy = sum(_is_healthy(pod, leaving) for pod in counted)
    expected, desired = _needed(budget, counted, scales)
    allowed = max(0, healthy - desired) if expected else 0
    return {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "observedGeneration": budget.metadata.generation,
        **({"disruptedPods": leaving} if leaving else {}),
        "conditions": with_condition(budget.status.get("conditions"), _said(allowed), write_time(now)),
    }


def look_again_s(status: Document, now: datetime) -> float | None:
    """When the first pod that was let go has to be counted again."""
    left = (EVICTION_S - seconds_since(moment, now) for moment in status.get("disruptedPods", {}).values())
    return max(0.1, min(left)) if status.get("disruptedPods") else None


def _still_leaving(budget: Budget, pods: Sequence[Pod], now: datetime) -> dict[str, str]:
    there = {pod.metadata.name for pod in pods if not pod.metadata.is_going}
    noted: Mapping[str, str] = budget.status.get("disruptedPods") or {}
    return {name: at for name, at in noted.items() if name in there and seconds_since(at, now) < EVICTION_S}


def _is_healthy(pod: Pod, leaving: Mapping[str, str]) -> bool:
    return pod.is_ready and not pod.metadata.is_going and pod.metadata.name not in leaving


def _needed(budget: Budget, pods: Sequence[Pod], scales: Mapping[str, int]) -> tuple[int, int]:
    """How many pods there should be, and how many of them must be healthy."""
    least, most_missing = budget.spec.min_available, budget.spec.max_unavailable
    if isinstance(least, int):
        return len(pods), least
    expected = _expected(pods, scales)
    if least is not None:
        return expected, amount_of(least, expected, rounds_up=True)
    missing = amount_of(1 if most_missing is None else most_missing, expected, rounds_up=True)
    return expected, max(0, expected - missing)


def _expected(pods: Sequence[Pod], scales: Mapping[str, int]) -> int:
    """What their controllers want; pods whose controller is not known stand for themselves."""
    controllers = [pod.metadata.controller for pod in pods]
    known = {owner.uid for owner in controllers if owner is not None and owner.uid in scales}
    alone = sum(owner is None or owner.uid not in known for owner in controllers)
    return sum(scales[uid] for uid in known) + alone


def _said(allowed: int) -> Said:
    if allowed:
        return Said("DisruptionAllowed", "True", "SufficientPods")
    return Said("DisruptionAllowed", "False", "InsufficientPods")
