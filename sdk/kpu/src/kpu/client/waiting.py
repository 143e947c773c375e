"""Waiting for a Compute: following it, and telling why it is not ready yet.

A watch can end, be cut, hang, be forbidden or begin too late. So it never lasts long, and after each the Compute is
read anew: what a watch missed is seen then. Only the caller's deadline ends the waiting, or a verdict.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubernetes import client

from kpu.client.api import DEADLINE_S, message_of, status_of
from kpu.client.computes import FORBIDDEN, Computes, Event
from kpu.client.deadlines import Deadline
from kpu.client.models import KpuV1alpha1Compute
from kpu.client.symptoms import diagnose
from kpu.client.verdicts import Failed, IsDeleted, IsSuspended, Ready, Verdict, Waiting, explains_itself, judge
from kpu.errors import ComputeDeleted, ComputeFailed, KpuError, ReadyTimeout, Suspended

WATCH_S = 10
LOOK_S = 2
"""How long a watch lasts; shorter where pods and events have to be looked at in between."""
SILENCE_S = 3
"""How much later than agreed a server may end a watch before the connection counts as dead."""
PAUSE_S = 0.2
LONGEST_PAUSE_S = 2.0

Tell = Callable[[str, str], None]
"""Is given a reason and a message."""


@dataclass
class Wait:
    """One wait for one Compute, in a thread of its own. `tell` is None if nobody wants to know."""

    computes: Computes
    name: str
    deadline: Deadline
    tell: Tell | None = None
    told: set[tuple[Any, ...]] = field(default_factory=set[tuple[Any, ...]])
    """What was told already, also by an earlier wait."""
    given_up: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._why = Waiting("Pending", "nothing is known about it yet")

    def until_ready(self) -> KpuV1alpha1Compute:
        for compute in self._states():
            verdict = IsDeleted() if compute is None else self._verdict(compute)
            if compute is not None and isinstance(verdict, Ready):
                self._tell_once("Ready", f"Compute {self._full_name} is ready")
                return compute
            if not isinstance(verdict, Waiting) or isinstance(verdict, Failed):
                raise refusal(self._full_name, verdict)
            self._why = verdict
            self._tell_once(verdict.reason, verdict.message)
        raise ReadyTimeout(
            f"Compute {self._full_name} was not ready within {self.deadline}; the last known reason is "
            f"{self._why}; wait longer with ready(timeout=...), or look at kubectl describe compute {self.name}"
        )

    def until_gone(self, uid: str | None) -> bool:
        """Whether it went before the deadline. Another Compute of the same name is another Compute."""
        return any(compute is None or compute.metadata.uid != uid for compute in self._states())

    @property
    def _full_name(self) -> str:
        return f"{self.computes.namespace}/{self.name}"

    def _verdict(self, compute: KpuV1alpha1Compute) -> Verdict:
        verdict = judge(compute)
        if not isinstance(verdict, Waiting) or explains_itself(compute):
            return verdict
        try:
            events = self._events(compute, DEADLINE_S)
            return diagnose(self.computes.pods(self.name, self._request_s) or (), events) or verdict
        except client.ApiException as error:
            if _may_pass(error):
                return verdict
            raise

    def _states(self) -> Iterator[KpuV1alpha1Compute | None]:
        """The Compute as it is and after each change, again and again until the deadline; None once it is gone."""
        pause_s = PAUSE_S
        while not self.given_up.is_set():
            try:
                found = self.computes.get(self.name, self._request_s)
                if found is not None:
                    self._tell_events(found)
                yield found
                if found is None or self.deadline.has_passed:
                    return
                yield from self._watch(found)
                pause_s = PAUSE_S
            except client.ApiException as error:
                if not _may_pass(error):
                    raise
                self._why = Waiting("ApiServerUnreachable", message_of(error))
                self._tell_once(self._why.reason, self._why.message)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            if self.deadline.has_passed:
                return
            self.given_up.wait(self.deadline.share(pause_s))

    def _watch(self, found: KpuV1alpha1Compute) -> Iterator[KpuV1alpha1Compute]:
        lasting_s = math.ceil(self.deadline.share(WATCH_S if explains_itself(found) and self.tell is None else LOOK_S))
        quiet_s = self.deadline.share(lasting_s + SILENCE_S, PAUSE_S)
        since = found.metadata.resource_version or ""
        try:
            for changed in self.computes.changes(self.name, since, lasting_s, quiet_s):
                yield changed
                if self.given_up.is_set() or self.deadline.has_passed:
                    return
        except client.ApiException as error:
            if status_of(error) == FORBIDDEN:
                self.given_up.wait(self.deadline.share(LOOK_S))
            elif not _may_pass(error):
                raise

    @property
    def _request_s(self) -> float:
        """What one question may take. There is always time for one."""
        return self.deadline.share(DEADLINE_S, PAUSE_S)

    def _events(self, compute: KpuV1alpha1Compute, most_s: float) -> Sequence[Event]:
        within_s = self.deadline.share(most_s, PAUSE_S)
        return self.computes.events(self.name, compute.metadata.creation_timestamp, within_s)

    def _tell_events(self, found: KpuV1alpha1Compute) -> None:
        """Those who do not get to know them still get to know whether it is ready."""
        if self.tell is None:
            return
        try:
            for event in self._events(found, LOOK_S):
                self._tell_once(event.reason, event.message, event.key)
        except client.ApiException as error:
            if not _may_pass(error):
                raise

    def _tell_once(self, reason: str, message: str, key: tuple[Any, ...] = ()) -> None:
        known = (reason, message, *key)
        if self.tell is not None and known not in self.told:
            self.told.add(known)
            self.tell(reason, message)


def refusal(full_name: str, verdict: Verdict) -> KpuError:
    """Why it is in vain to wait."""
    match verdict:
        case Failed(reason, message):
            return ComputeFailed(
                f"Compute {full_name} cannot become ready ({reason}): {message or 'no more is known'}; "
                "change what it asks for and apply it again",
                reason,
                message,
            )
        case IsSuspended():
            return Suspended(f"Compute {full_name} is suspended: call resume(), then ready()")
        case IsDeleted():
            return ComputeDeleted(f"Compute {full_name} has been deleted: make a new one")
        case _:
            raise AssertionError(verdict)


def _may_pass(error: client.ApiException) -> bool:
    """410 too: it is why the Compute is read anew."""
    return status_of(error) in (0, 408, 410, 429) or status_of(error) >= 500
