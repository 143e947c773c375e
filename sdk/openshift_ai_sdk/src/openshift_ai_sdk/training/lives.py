"""Jobs of one name, one after the other. What an earlier one leaves behind for a while is not the later one's.

Whoever deletes a job and creates it again finds its old pods until they have ended, and its old events for an hour,
all under the names that the new ones have.
"""

from collections.abc import Sequence
from typing import NamedTuple, Optional

from .documents import KIND, Document, mappings_at, text_at, time_at
from .pods import Pod, is_going, uid_of
from .statuses import Event, when

SKEW_S = 2.0
"""By how much the clocks of two API servers may differ: a pod may seem a little older than its job."""
TO_THE_SECOND = len("2026-01-01T00:00:00")


class Birth(NamedTuple):
    """When the job of this name was created, as the API server writes it."""

    namespace: str
    name: str
    born: str


class Life:
    """Of the job that was there when it was first seen."""

    def __init__(self) -> None:
        self._first: Optional[Document] = None
        self._is_over = False

    @property
    def has_begun(self) -> bool:
        return self._first is not None

    def sees(self, document: Document) -> bool:
        """False, if this is another job of the name."""
        self._first = document if self._first is None else self._first
        uids = {text_at(one, "metadata", "uid") for one in (self._first, document)} - {""}
        self._is_over = self._is_over or len(uids) > 1
        return not self._is_over

    def own_pods(self, pods: Sequence[Pod]) -> list[Pod]:
        """Of those that bear its name."""
        return [] if self._is_over or self._first is None else own_pods(self._first, pods)


def own_pods(document: Document, pods: Sequence[Pod]) -> list[Pod]:
    return [pod for pod in pods if not _is_anothers(document, pod)]


def own_events(document: Document, pods: Sequence[Pod], events: Sequence[Event]) -> list[Event]:
    """`pods` are the job's own."""
    known = {text_at(document, "metadata", "uid"), *map(uid_of, pods)}
    born = text_at(document, "metadata", "creationTimestamp")[:TO_THE_SECOND]

    def is_own(event: Event) -> bool:
        uid = text_at(event, "involvedObject", "uid")
        if not uid or uid in known:
            return True
        is_about_another = text_at(event, "involvedObject", "kind") == KIND
        return not is_about_another and when(event)[:TO_THE_SECOND] >= born

    return [event for event in events if is_own(event)]


def _is_anothers(document: Document, pod: Pod) -> bool:
    """Workers are the job's own and say whose; a launcher is its Job's, and its age has to tell."""
    own, owner = text_at(document, "metadata", "uid"), _owner(pod)
    if own and owner:
        return owner != own
    born, made = time_at(document, "metadata", "creationTimestamp"), time_at(pod, "metadata", "creationTimestamp")
    if born is None or made is None:
        return False
    ahead_s = (born - made).total_seconds()
    return ahead_s > SKEW_S or (ahead_s > 0 and is_going(pod))


def _owner(pod: Pod) -> str:
    """The UID of the MPIJob that made it, if one did."""
    owners = mappings_at(pod, "metadata", "ownerReferences")
    return next((text_at(one, "uid") for one in owners if one.get("kind") == KIND), "")
