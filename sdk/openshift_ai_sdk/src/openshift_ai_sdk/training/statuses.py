"""What became of an MPIJob, in four words and a sentence.

Conditions are appended in no order, and some outlive what they say. An invalid job has none: all the operator does is
to write an event. So events and pods are a part of the judgement, and are asked for only where conditions do not
answer. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

from .documents import Document, int_at, mapping_at, mappings_at, text_at
from .manifests import is_suspended
from .pods import Pod, phase_of
from .settings import REPLICAS, WORKER

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
FINISHED = (SUCCEEDED, FAILED)
EVICTED, INVALID, RESOURCE_EXISTS = "MPIJobEvicted", "ValidationError", "ErrResourceExists"
REFUSED = "MPIJobFailed"
"""Of an event: workers could not be made. The operator goes on trying."""
Event = Mapping[str, Any]
LONGEST = 500
"""Some operators put the end of a log into a message."""


class Status(NamedTuple):
    """`value` is one of the four; `detail` says what is behind it."""

    value: str
    detail: str
    reason: str = ""

    @property
    def is_finished(self) -> bool:
        return self.value in FINISHED


def judge_conditions(document: Document) -> Optional[Status]:
    """None where they do not answer."""
    true = {text_at(one, "type"): one for one in mappings_at(document, "status", "conditions") if _is_true(one)}
    if FAILED in true:
        return _told(FAILED, true[FAILED], "Evicted" if text_at(true[FAILED], "reason") == EVICTED else "Failed")
    if SUCCEEDED in true:
        return _told(SUCCEEDED, true[SUCCEEDED], "Succeeded")
    if "Suspended" in true or (true and is_suspended(document) and RUNNING not in true):
        return _told(PENDING, true.get("Suspended", {}), "Suspended")
    if RUNNING in true:
        return _told(RUNNING, true[RUNNING], "Running")
    if "Restarting" in true:
        return _told(PENDING, true["Restarting"], "Restarting")
    return _told(PENDING, true["Created"], "Created") if "Created" in true else None


def judge_events(document: Document, events: list[Event]) -> Optional[Status]:
    """By those about the job itself. None where they do not answer."""
    by_reason = {text_at(event, "reason"): event for event in events_about(document, events)}
    if INVALID in by_reason:
        return _told(FAILED, by_reason[INVALID], "Invalid")
    if RESOURCE_EXISTS in by_reason:
        return _told(PENDING, by_reason[RESOURCE_EXISTS], "ResourceExists")
    if REFUSED in by_reason:
        return _told(PENDING, by_reason[REFUSED], "Refused")
    return None


def judge_pods(document: Document, pods: Sequence[Pod]) -> Status:
    """By what there is of the job, where nobody has said anything about it."""
    evicted = [pod for pod in pods if text_at(pod, "status", "reason") == "Evicted"]
    if evicted:
        return Status(FAILED, f"Evicted: {len(evicted)} of {len(pods)} pods are evicted", "Evicted")
    if is_suspended(document):
        return Status(PENDING, "Suspended", "Suspended")
    count = (int_at(document, *REPLICAS, WORKER, "replicas") or 0) + 1
    if len([pod for pod in pods if phase_of(pod) == "Running"]) == count:
        return Status(RUNNING, "Running: its launcher and all of its workers run", "Running")
    return Status(PENDING, "Accepted: no controller has told anything about the job yet", "Accepted")


def events_about(document: Document, events: list[Event]) -> list[Event]:
    """Not those of an earlier job of the same name. Oldest first."""
    uid = text_at(document, "metadata", "uid")
    own = [one for one in events if not uid or text_at(one, "involvedObject", "uid") in ("", uid)]
    return sorted(own, key=when)


def when(event: Event) -> str:
    """When it was last seen, in a form that sorts."""
    series = text_at(mapping_at(event, "series"), "lastObservedTime")
    return series or text_at(event, "lastTimestamp") or text_at(event, "eventTime") or text_at(event, "firstTimestamp")


def _is_true(condition: Mapping[str, Any]) -> bool:
    return str(condition.get("status")).lower() == "true"


def _told(value: str, by: Mapping[str, Any], reason: str) -> Status:
    said = " ".join((text_at(by, "message") or text_at(by, "reason")).split())
    said = said if len(said) <= LONGEST else f"{said[: LONGEST - 1]}…"
    return Status(value, f"{reason}: {said}" if said else reason, reason)
