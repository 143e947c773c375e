"""What a Compute says of itself: whether it is ready, why not, and where it is reached. Pure.

Ready speaks of the Compute as it is wanted now: a pod of an earlier template does not make it ready. Stalled is what
does not get better by waiting, so whoever waits can stop. Both follow from what is there and nothing else, so they go
away with their cause.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import datetime

import msgspec

from tessera.kube.objects import Document
from tessera.operators.compute_children import ComputeSettings
from tessera.operators.compute_objects import PORT, Address, Compute, ComputeStatus
from tessera.operators.compute_pods import (
    IMAGE_PULL_FAILED,
    UNSCHEDULABLE,
    ComputePod,
    Trouble,
    describe_start,
    find_trouble,
)
from tessera.operators.compute_refusals import Event, find_refusal
from tessera.operators.objects import Condition

READY, SUSPENDED, STALLED, ROUTED = "Ready", "Suspended", "Stalled", "Routed"
OWN = frozenset({READY, SUSPENDED, STALLED, ROUTED})
"""Conditions that are ours. Others may tell theirs on the same Compute, and those stay."""
STATES = (READY, SUSPENDED, STALLED, STARTING := "Starting")
MOST_ADDRESSES = 16
MOST_MESSAGE = 4096


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """`hindrance` is why not all could be made that is wanted; `unroutable` why no route leads to it.

    With a `token_trouble` no client can show the token. A pod that serves goes on serving.
    """

    stateful_set: Document | None = None
    service: Document | None = None
    pods: tuple[ComputePod, ...] = ()
    events: tuple[Event, ...] = ()
    pulls_failed_since: datetime | None = None
    calm_restarts: int = 0
    is_unplaceable: bool = False
    volume_trouble: Trouble | None = None
    hindrance: Trouble | None = None
    token_trouble: Trouble | None = None
    unroutable: Trouble | None = None
    gateway_addresses: tuple[Address, ...] = ()


class Progress(msgspec.Struct, frozen=True):
    """Of a StatefulSet, by the word of its controller. `is_seen` tells whether that is about the present one."""

    wanted: int
    made: int
    ready: int
    updated: int
    revision: str
    is_seen: bool

    @property
    def is_done(self) -> bool:
        return self.is_seen and self.wanted > 0 and self.ready == self.updated == self.wanted


def judge_compute(compute: Compute, observed: Observed, settings: ComputeSettings, now: datetime) -> ComputeStatus:
    """Conditions have no times yet."""
    ready, trouble = _judge_readiness(compute, observed, settings, now)
    conditions = [ready, _suspended(compute, observed), _stalled(trouble)]
    if compute.spec.route:
        conditions.append(_routed(observed.unroutable))
    return ComputeStatus(
        observed_generation=compute.metadata.generation,
        conditions=(*_of_present(compute, conditions), *_others(compute, OWN)),
        addresses=addresses_of(compute, observed, settings) or None,
    )


def judge_deletion(compute: Compute) -> ComputeStatus:
    """Of a Compute that is held by finalizers only. What else was said of it stays as it was."""
    ready = _condition(READY, False, "Deleting", "Compute is being deleted")
    return msgspec.structs.replace(
        compute.status,
        observed_generation=compute.metadata.generation,
        conditions=(*_of_present(compute, [ready]), *_others(compute, {READY})),
    )


def state_of(compute: Compute) -> str:
    """In one word, as `kubectl get` shows it."""
    true = {one.type for one in compute.status.conditions or () if one.status == "True"}
    return next((state for state in STATES if state in true), STARTING)


def addresses_of(compute: Compute, observed: Observed, settings: ComputeSettings) -> tuple[Address, ...]:
    """The Service's own first: it is the shortest way, and the only one where there is no DNS."""
    if observed.service is None:
        return ()
    own: list[Address] = []
    address: str = observed.service["spec"].get("clusterIP") or ""
    if address and address != "None":
        own.append(Address(type="IPAddress", value=address, port=PORT))
    if settings.cluster_domain:
        name = f"{compute.name}.{compute.namespace}.svc.{settings.cluster_domain}"
        own.append(Address(type="Hostname", value=name, port=PORT))
    return (*own, *observed.gateway_addresses)[:MOST_ADDRESSES]


def read_progress(stateful_set: Document) -> Progress:
    told: Document = stateful_set.get("status") or {}
    return Progress(
        wanted=stateful_set["spec"].get("replicas", 1),
        made=told.get("replicas") or 0,
        ready=told.get("readyReplicas") or 0,
        updated=told.get("updatedReplicas") or 0,
        revision=told.get("updateRevision") or "",
        is_seen=(told.get("observedGeneration") or 0) >= stateful_set["metadata"].get("generation", 0),
    )


def _judge_readiness(
    compute: Compute, observed: Observed, settings: ComputeSettings, now: datetime
) -> tuple[Condition, Trouble | None]:
    if compute.spec.suspend and _is_asleep(observed):
        return _condition(READY, False, "Suspended", "Compute is suspended"), None
    if observed.hindrance:
        return _condition(READY, False, observed.hindrance.reason, observed.hindrance.message), observed.hindrance
    if compute.spec.suspend:
        return _condition(READY, False, "Suspending", "Compute is being suspended"), None
    if observed.stateful_set is None:
        return _condition(READY, False, "StatefulSetNotAvailable", "the StatefulSet is not there yet"), None
    progress = read_progress(observed.stateful_set)
    if progress.is_done or _serves_beside_surplus(progress, observed):
        message = f"All {progress.wanted} replicas are ready"
        return _condition(READY, True, "StatefulSetReady", message), observed.token_trouble
    hopeless = _hopeless(observed, settings, now)
    trouble = observed.token_trouble or _find_trouble(observed.stateful_set, progress, observed, hopeless, now)
    if trouble:
        return _condition(READY, False, trouble.reason, trouble.message), trouble
    message = f"StatefulSet has {_ready_now(progress)}/{progress.wanted} ready replicas"
    return _condition(READY, False, "StatefulSetNotReady", f"{message}; {_describe(progress, observed.pods)}"), None


def _serves_beside_surplus(progress: Progress, observed: Observed) -> bool:
    """Pods that somebody scaled up to count until they have ended, some here and some there: each is looked at."""
    if observed.stateful_set is None or not progress.is_seen or progress.made <= progress.wanted:
        return False
    wanted = {f"{observed.stateful_set['metadata']['name']}-{ordinal}" for ordinal in range(progress.wanted)}
    serving = {pod.name for pod in observed.pods if pod.revision == progress.revision and pod.is_serving}
    return bool(wanted) and wanted <= serving


def _find_trouble(
    stateful_set: Document, progress: Progress, observed: Observed, hopeless: Set[str], now: datetime
) -> Trouble | None:
    """Of the pod as it is wanted now; where there is none, of what stands in its way."""
    if not progress.is_seen:
        return None
    if not observed.pods:
        return find_refusal(stateful_set, observed.events)
    current = (pod for pod in observed.pods if pod.revision == progress.revision and not pod.is_going)
    found = (find_trouble(pod, hopeless, now, observed.calm_restarts) for pod in current)
    return next((trouble for trouble in found if trouble), observed.volume_trouble)


def _hopeless(observed: Observed, settings: ComputeSettings, now: datetime) -> Set[str]:
    since = observed.pulls_failed_since
    has_been_patient = since is not None and (now - since).total_seconds() >= settings.patience_s
    reasons = {IMAGE_PULL_FAILED: has_been_patient, UNSCHEDULABLE: observed.is_unplaceable}
    return {reason for reason, is_hopeless in reasons.items() if is_hopeless}


def _ready_now(progress: Progress) -> int:
    """Pods of an earlier template do not count."""
    return min(progress.ready, progress.updated) if progress.is_seen else 0


def _describe(progress: Progress, pods: Sequence[ComputePod]) -> str:
    if not progress.is_seen:
        return "what is wanted has just changed"
    if not pods:
        return "no pod has been made yet"
    pod = pods[0]
    if pod.revision != progress.revision and not pod.is_going:
        return f"pod {pod.name} is about to be replaced, what is wanted has changed"
    return describe_start(pod)


def _is_asleep(observed: Observed) -> bool:
    return observed.stateful_set is None or read_progress(observed.stateful_set).wanted == 0


def _suspended(compute: Compute, observed: Observed) -> Condition:
    if compute.spec.suspend and _is_asleep(observed):
        return _condition(SUSPENDED, True, "Suspended", "Compute is suspended")
    if compute.spec.suspend:
        return _condition(SUSPENDED, False, "Suspending", "the StatefulSet still has replicas")
    return _condition(SUSPENDED, False, "Resumed", "Compute is resumed")


def _stalled(trouble: Trouble | None) -> Condition:
    if trouble and trouble.is_final:
        return _condition(STALLED, True, trouble.reason, trouble.message)
    return _condition(STALLED, False, "NotStalled", "")


def _routed(unroutable: Trouble | None) -> Condition:
    if unroutable:
        return _condition(ROUTED, False, unroutable.reason, unroutable.message)
    return _condition(ROUTED, True, "RouteAccepted", "all that the GRPCRoute hangs on has taken it")


def _of_present(compute: Compute, conditions: Iterable[Condition]) -> Iterator[Condition]:
    generation = compute.metadata.generation
    return (msgspec.structs.replace(one, observed_generation=generation) for one in conditions)


def _others(compute: Compute, own: Set[str]) -> Iterator[Condition]:
    return (one for one in compute.status.conditions or () if one.type not in own)


def _condition(kind: str, is_so: bool, reason: str, message: str) -> Condition:
    return Condition(type=kind, status=str(is_so), reason=reason, message=message[:MOST_MESSAGE])
