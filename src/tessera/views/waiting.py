"""What a pod waits for, in one sentence, and since when.

kube-scheduler rewrites its condition at each attempt, so of all that is said it is the newest, and whoever may read the
pod may read it. Events are asked where no condition tells: nobody looked at the pod yet, or it is on its node and does
not start.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from tessera.views.documents import ContainerStatus, ViewedEvent, ViewedPod, read_time
from tessera.views.holdings import Holding
from tessera.views.records import View

STARTING = frozenset({"ContainerCreating", "PodInitializing"})
"""What the kubelet says of containers whose turn has not come; it names no obstacle."""

_ADDED = re.compile(r" (?:no new claims to deallocate,|preemption:)(?: |$)")


class WaitingView(View, frozen=True, kw_only=True):
    """`reason` is one word: that of the condition, the container or the event; `sentence` is for people."""

    reason: str
    sentence: str
    since: datetime | None


def latest_warnings(events: Iterable[ViewedEvent]) -> Mapping[str, ViewedEvent]:
    """Of each object by its UID the warning that was seen last."""
    latest: dict[str, ViewedEvent] = {}
    for event in events:
        uid = event.involved_object.uid
        if event.type == "Warning" and uid and (uid not in latest or _is_later(event, latest[uid])):
            latest[uid] = event
    return latest


def view_waiting(holding: Holding, warnings: Mapping[str, ViewedEvent]) -> WaitingView | None:
    """None for a pod that runs, is over, or is about to be gone."""
    pod, created_at = holding.pod, read_time(holding.pod.metadata.creation_timestamp)
    if holding.is_over or pod.metadata.deletion_timestamp is not None:
        return None
    if not pod.spec.node_name:
        if holding.complaints:
            return WaitingView(reason="InvalidRequest", sentence=holding.complaints[0], since=created_at)
        return _view_unscheduled(holding, warnings.get(holding.ref.uid), created_at)
    return _view_unstarted(holding, warnings.get(holding.ref.uid))


def _view_unscheduled(holding: Holding, warning: ViewedEvent | None, created_at: datetime | None) -> WaitingView:
    said = holding.pod.status.condition("PodScheduled")
    if said is not None and said.status != "True" and said.message:
        since = read_time(said.last_transition_time) or created_at
        return WaitingView(reason=said.reason or "Unschedulable", sentence=_short(said.message), since=since)
    if warning is not None:
        return WaitingView(reason=warning.reason or "Warning", sentence=_short(warning.message or ""), since=created_at)
    scheduler = holding.pod.spec.scheduler_name or "default-scheduler"
    return WaitingView(
        reason="NotScheduled", sentence=f"no scheduler named {scheduler} has looked at it yet", since=created_at
    )


def _view_unstarted(holding: Holding, warning: ViewedEvent | None) -> WaitingView | None:
    pod = holding.pod
    scheduled = pod.status.condition("PodScheduled")
    since = read_time(scheduled.last_transition_time if scheduled else None)
    if holding.request.wants_devices and holding.allocation is None:
        sentence = f"it is on node {pod.spec.node_name}, but no cards were given to it there"
        return WaitingView(reason="NoCardsGiven", sentence=sentence, since=since)
    waiting = _first_obstacle(pod)
    if waiting is not None:
        return WaitingView(reason=waiting[0], sentence=waiting[1], since=since)
    if pod.status.phase == "Pending" and warning is not None:
        return WaitingView(reason=warning.reason or "Warning", sentence=_short(warning.message or ""), since=since)
    return None


def _first_obstacle(pod: ViewedPod) -> tuple[str, str] | None:
    """The first container that cannot go on, such as one whose image is not to be had."""
    containers: tuple[ContainerStatus, ...] = (
        *(pod.status.init_container_statuses or ()),
        *(pod.status.container_statuses or ()),
    )
    for container in containers:
        waiting = container.state.waiting if container.state else None
        if waiting is not None and waiting.reason and waiting.reason not in STARTING:
            return waiting.reason, _short(waiting.message or waiting.reason)
    return None


def _is_later(one: ViewedEvent, other: ViewedEvent) -> bool:
    return one.at is not None and (other.at is None or one.at > other.at)


def _short(message: str) -> str:
    """On one line, and without what kube-scheduler adds about claims and preemption."""
    return " ".join(_ADDED.split(message, maxsplit=1)[0].split()).rstrip(".")
