"""The status of a pod, worked out from its containers as the kubelet does it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.runtime.fields import Place
from tessera.embedded.runtime.parts import listed
from tessera.embedded.runtime.states import Record, Running, Terminated, Waiting, write_time

UNREADY, UNINITIALIZED = "ContainersNotReady", "ContainersNotInitialized"
ENDED = ("Succeeded", "Failed")
COMPLETED, FAILED = "PodCompleted", "PodFailed"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the pod as a whole.

    It is `sandboxed` when it has its volumes, and `is_final` when nothing starts any more. `failure` is the
    reason and message of what ended it from outside, `conditions` are those that it has by now, by type.
    """

    place: Place
    began_at: datetime
    now: datetime
    sandboxed: bool = True
    is_final: bool = False
    failure: tuple[str, str] | None = None
    conditions: Mapping[str, Frozen] = {}


def pod_status(pod: Frozen, records: Sequence[Record], facts: Facts) -> Document:
    """Conditions that are not the node's are left out: they are somebody else's and stay as they are."""
    init_names = {container["name"] for container in listed(pod, "spec", "initContainers")}
    first = [record for record in records if record.name in init_names]
    others = [record for record in records if record.name not in init_names]
    spec: Frozen = pod["spec"]
    phase = _final_phase(spec, first, others, facts) if facts.is_final else _passing_phase(spec, first, others)
    status: Document = {
        "phase": phase,
        "conditions": _conditions(pod, phase, first, others, facts),
        "hostIP": facts.place.host_address,
        "hostIPs": [{"ip": facts.place.host_address}],
        "startTime": write_time(facts.began_at),
        "containerStatuses": [record.document() for record in others],
    }
    if facts.sandboxed:
        status |= {"podIP": facts.place.pod_address, "podIPs": [{"ip": facts.place.pod_address}]}
    if first:
        status["initContainerStatuses"] = [_first_document(record, sidecar_names(spec)) for record in first]
    if facts.failure and phase == "Failed":
        status["reason"], status["message"] = facts.failure
    return status


def _first_document(record: Record, sidecars: set[str]) -> Document:
    """An init container is ready when it has done its part; a sidecar, while it runs, like any container."""
    document = record.document()
    return document if record.name in sidecars else document | {"ready": is_done(record)}


def _final_phase(spec: Frozen, first: Sequence[Record], others: Sequence[Record], facts: Facts) -> str:
    """A pod that was stopped is not started again, whatever its policy. One that never began stays as it was."""
    return "Failed" if facts.failure else phase_of({**spec, "restartPolicy": "Never"}, first, others)


def _passing_phase(spec: Frozen, first: Sequence[Record], others: Sequence[Record]) -> str:
    """While anything of it may still run, a pod has not ended."""
    phase = phase_of(spec, first, others)
    if phase in ENDED:
        return "Running" if _has_begun(others) else "Pending"
    return phase


def phase_of(spec: Frozen, first: Sequence[Record], others: Sequence[Record]) -> str:
    policy: str = spec.get("restartPolicy", "Always")
    sidecars = sidecar_names(spec)
    for record in first:
        if record.name in sidecars:
            if not isinstance(record.state, Running) and record.last is None and not _has_begun(others):
                return "Pending"
        elif isinstance(record.state, Terminated) and record.state.exit_code:
            return "Failed" if policy == "Never" else "Pending"
        elif not is_done(record):
            return "Pending"
    states = [_settled_state(record) for record in others]
    if any(isinstance(state, Waiting) for state in states):
        return "Pending"
    if any(isinstance(state, Running) for state in states) or policy == "Always":
        return "Running"
    if all(isinstance(state, Terminated) and state.exit_code == 0 for state in states):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def sidecar_names(spec: Frozen) -> set[str]:
    """Init containers that go on running beside the others."""
    return {one["name"] for one in listed(spec, "initContainers") if one.get("restartPolicy") == "Always"}


def is_done(record: Record) -> bool:
    return isinstance(record.state, Terminated) and record.state.exit_code == 0


def _settled_state(record: Record) -> Waiting | Running | Terminated:
    """One that waits to be started again counts as it ended."""
    if isinstance(record.state, Waiting) and record.last is not None:
        return record.last
    return record.state


def _has_begun(records: Iterable[Record]) -> bool:
    return any(not isinstance(record.state, Waiting) or record.last for record in records)


def _conditions(
    pod: Frozen, phase: str, first: Sequence[Record], others: Sequence[Record], facts: Facts
) -> list[Document]:
    sidecars = sidecar_names(pod["spec"])
    incomplete = [one.name for one in first if not (one.started if one.name in sidecars else is_done(one))]
    unready = [one.name for one in (*first, *others) if not one.ready and (one in others or one.name in sidecars)]
    over = phase in ENDED
    done = (COMPLETED if phase == "Succeeded" else FAILED, "") if over else None
    waits_first = (UNINITIALIZED, f"containers with incomplete status: {_list(incomplete)}") if incomplete else None
    waits = done or ((UNREADY, f"containers with unready status: {_list(unready)}") if unready else None)
    ready = waits or _unmet_gate(pod, facts.conditions)
    reasons: dict[str, tuple[str, str] | None] = {
        "PodReadyToStartContainers": None if facts.sandboxed and not over else ("", ""),
        "Initialized": None if phase == "Succeeded" else waits_first,
        "Ready": ready,
        "ContainersReady": waits,
    }
    return [_condition(kind, why, facts.conditions.get(kind), facts.now) for kind, why in reasons.items()]


def _unmet_gate(pod: Frozen, conditions: Mapping[str, Frozen]) -> tuple[str, str] | None:
    for gate in listed(pod, "spec", "readinessGates"):
        if conditions.get(gate["conditionType"], {}).get("status") != "True":
            return "ReadinessGatesNotReady", f'the status of pod readiness gate "{gate["conditionType"]}" is not "True"'
    return None


def _condition(kind: str, why: tuple[str, str] | None, before: Frozen | None, now: datetime) -> Document:
    """`why` it does not hold; None if it does. The time is that of the last change."""
    status = "True" if why is None else "False"
    changed_at = before["lastTransitionTime"] if before and before["status"] == status else write_time(now)
    condition: Document = {"type": kind, "status": status, "lastTransitionTime": changed_at}
    reason, message = why or ("", "")
    # Named also when empty: a merge would leave the last ones standing.
    return condition | {"reason": reason or None, "message": message or None}


def _list(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"
