"""What pods and events tell about a Compute whose operator does not: why it is not ready, and whether it ever will be.

The first operators knew the conditions Ready and Suspended only, and "0/1 replicas are ready" was all they said. Pure:
pods come in as the API has them, and events as they were read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kpu.client.computes import Event
from kpu.client.verdicts import Failed, Waiting

Json = Mapping[str, Any]

HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"})
REFUSED = ("not found", "manifest unknown", "denied", "unauthorized", "not exist")
"""What registries answer when another attempt would change nothing."""
RESTARTS = 2
"""After so many a container that still crashes has had its chance."""


def diagnose(pods: Sequence[Json], events: Sequence[Event]) -> Waiting | None:
    """The gravest of what is seen, or None if nothing stands out."""
    seen = [*_from_pods(pods), *_from_events(events)]
    return next((one for one in seen if isinstance(one, Failed)), seen[0] if seen else None)


def _from_pods(pods: Sequence[Json]) -> Iterator[Waiting]:
    for pod in pods:
        status: Json = pod.get("status", {})
        for container in _containers(status):
            seen = _from_container(container)
            if seen:
                yield seen
        for condition in status.get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                yield Waiting(condition.get("reason", "Unschedulable"), condition.get("message", ""))


def _containers(status: Json) -> Iterable[Json]:
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]


def _from_container(container: Json) -> Waiting | None:
    waiting: Json = container.get("state", {}).get("waiting", {})
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    name = container.get("name", "")
    if reason in HOPELESS:
        return Failed(reason, message)
    if reason in PULLING:
        said = message or f"the image of container {name} cannot be pulled"
        return (Failed if _is_refused(said) else Waiting)(reason, said)
    if reason == "CrashLoopBackOff":
        restarts = container.get("restartCount", 0)
        return (Failed if restarts >= RESTARTS else Waiting)(reason, f"{_last_end(container)}, {restarts} restarts")
    if reason and reason not in ("ContainerCreating", "PodInitializing"):
        return Waiting(reason, message)
    return None


def _is_refused(message: str) -> bool:
    return any(words in message.lower() for words in REFUSED)


def _last_end(container: Json) -> str:
    ended: Json = container.get("lastState", {}).get("terminated", {})
    words = " ".join(str(ended.get("message", "")).split())
    how = f"container {container.get('name', '')} ended with exit code {ended.get('exitCode', 'unknown')}"
    reason = ended.get("reason", "")
    return f"{how} ({reason})" + (f": {words}" if words else "") if reason else how


def _from_events(events: Sequence[Event]) -> Iterator[Waiting]:
    """Those of the StatefulSet: a pod that may not be made has no events of its own."""
    for event in events:
        if event.type == "Warning" and event.reason == "FailedCreate":
            yield Waiting("QuotaExceeded" if "exceeded quota" in event.message else "FailedCreate", event.message)
