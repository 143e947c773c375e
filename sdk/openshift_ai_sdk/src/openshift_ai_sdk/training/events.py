"""Events of a namespace that are about a job, its launcher or its pods."""

from . import api
from .documents import KIND, mappings_at, text_at
from .statuses import Event, when


def events_of(namespace: str, job: str) -> list[Event]:
    """About the MPIJob itself."""
    return _events(namespace, f"involvedObject.kind={KIND},involvedObject.name={job}")


def events_around(namespace: str, job: str) -> list[Event]:
    """About the job and everything that bears its name. Oldest first."""
    found = [one for one in _events(namespace, "") if _belongs(text_at(one, "involvedObject", "name"), job)]
    return sorted(found, key=when)


def _belongs(name: str, job: str) -> bool:
    return name == job or name.startswith((f"{job}-launcher", f"{job}-worker-"))


def _events(namespace: str, field_selector: str) -> list[Event]:
    query = {"fieldSelector": field_selector} if field_selector else {}
    return mappings_at(api.get(api.in_namespace(namespace, "events"), query), "items")
