"""A pod's PriorityClass, resolved into the number that schedulers go by."""

from collections.abc import Sequence
from typing import NamedTuple

from tessera.embedded.admitting.requests import Reader, Request
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import forbidden

CLASSES = "priorityclasses.scheduling.k8s.io"
_PREEMPTS = "PreemptLowerPriority"


class Priority(NamedTuple):
    value: int = 0
    preemption: str = _PREEMPTS
    class_name: str = ""


SYSTEM = {
    "system-cluster-critical": Priority(2_000_000_000, _PREEMPTS, "system-cluster-critical"),
    "system-node-critical": Priority(2_000_001_000, _PREEMPTS, "system-node-critical"),
}
"""The classes that every cluster has."""


def resolve_priority(request: Request, pod: Document, reader: Reader) -> Document:
    """A pod with its priority; `pod` stays as it is."""
    spec: Document = pod["spec"]
    name: str = spec.get("priorityClassName") or ""
    priority = _named(name, reader) if name else _default(reader.list(CLASSES))
    if priority is None:
        raise forbidden(request.kind, request.name, f"no PriorityClass with name {name} was found")
    said = spec.get("priority")
    if said is not None and said != priority.value:
        why = (
            f"the integer value of priority ({said}) must not be provided in pod spec; priority admission controller "
            f"computed {priority.value} from the given PriorityClass name"
        )
        raise forbidden(request.kind, request.name, why)
    resolved: Document = {"priority": priority.value}
    resolved |= {"priorityClassName": priority.class_name} if priority.class_name else {}
    resolved |= {} if spec.get("preemptionPolicy") else {"preemptionPolicy": priority.preemption}
    return {**pod, "spec": {**spec, **resolved}}


def _named(name: str, reader: Reader) -> Priority | None:
    found = reader.get(CLASSES, "", name)
    return _priority(found) if found is not None else SYSTEM.get(name)


def _default(classes: Sequence[Frozen]) -> Priority:
    """The lowest of those that say that they are the default, of which there should be one."""
    defaults = [_priority(one) for one in classes if one.get("globalDefault")]
    return min(defaults) if defaults else Priority()


def _priority(found: Frozen) -> Priority:
    return Priority(found.get("value", 0), found.get("preemptionPolicy") or _PREEMPTS, found["metadata"]["name"])
