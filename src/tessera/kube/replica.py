"""The informer's state machine: where it stands, what it knows, and what follows from each thing it hears. No I/O.

It goes in rounds. A round that begins without a position takes in everything first; one with a position resumes
there. However a round ends, `end` says where the next begins: everything is asked for again only when the server has
forgotten our position, and then the difference is told, no more.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from tessera.errors import ApiError, BadRequest, Expired, Forbidden, Invalid, KubeError, UnreadableReply
from tessera.kube.caching import Cache, Change, Listing
from tessera.kube.listing import Page
from tessera.kube.objects import identify
from tessera.kube.requests import is_resource_version_too_large
from tessera.kube.watching import Bookmark, EventType, ObjectEvent, Undecodable, WatchEvent

T = TypeVar("T")
Report = Callable[[Undecodable], None]


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where a round begins. Without a `resource_version` it takes in everything."""

    resource_version: str = ""
    streams_initial_events: bool = True
    failures: int = 0


def after_round(position: Position, *, progressed: bool, error: KubeError | None) -> Position:
    """Where the next round begins. One that got nowhere, or ended by an error, is a failure to be waited out."""
    if _refuses_initial_events(position, error):
        return msgspec.structs.replace(position, streams_initial_events=False)
    failures = 0 if progressed else position.failures
    if error is not None or not progressed:
        failures += 1
    resource_version = "" if _has_lost_its_place(error) else position.resource_version
    return msgspec.structs.replace(position, resource_version=resource_version, failures=failures)


def _refuses_initial_events(position: Position, error: KubeError | None) -> bool:
    asked = position.streams_initial_events and not position.resource_version
    return asked and isinstance(error, BadRequest | Invalid | Forbidden | UnreadableReply)


def _has_lost_its_place(error: KubeError | None) -> bool:
    return isinstance(error, Expired) or (isinstance(error, ApiError) and is_resource_version_too_large(error))


class Replica(Generic[T]):
    """`report` is told of objects that do not decode; what was known of such an object stays known."""

    def __init__(self, cache: Cache[T], report: Report) -> None:
        self.cache = cache
        self.position = Position()
        self.is_complete = False
        self._report = report
        self._listing: Listing[T] | None = None
        self._progressed = False

    def begin(self) -> Position:
        """Start a round. What the last one had taken in by half is worth nothing."""
        self._progressed = False
        self.is_complete = bool(self.position.resource_version)
        self._listing = None if self.is_complete else Listing(self.cache)
        return self.position

    def take(self, event: WatchEvent[T]) -> list[Change[T]]:
        """Take in one event of a watch, and say what it changes."""
        if isinstance(event, Undecodable):
            self._report(event)
        if self._listing is None:
            return self._follow(event)
        return self._collect(event, self._listing)

    def take_list(self, page: Page[T]) -> list[Change[T]]:
        """Take in everything at once, and say what it changes."""
        listing = Listing(self.cache)
        for thing in page.items:
            listing.put(identify(thing), thing)
        for odd in page.undecodable:
            self._report(odd)
            listing.keep(odd.identity)
        return self._complete(listing, page.resource_version)

    def take_absence(self) -> list[Change[T]]:
        """The kind is not served, so there is nothing of it. That is no progress: the next round waits longer."""
        self._listing = None
        self.is_complete = True
        return self.cache.replace(Listing(self.cache))

    def end(self, error: KubeError | None = None, *, was_settled: bool = False) -> Position:
        """End the round. `was_settled` says that its watch stood for a while, even if nothing happened in it."""
        progressed = self._progressed or was_settled
        self.position = after_round(self.position, progressed=progressed, error=error)
        return self.position

    def _collect(self, event: WatchEvent[T], listing: Listing[T]) -> list[Change[T]]:
        if isinstance(event, Bookmark):
            if not event.is_synced:
                raise UnreadableReply("watch: a bookmark came before the end of the initial events")
            return self._complete(listing, event.resource_version)
        identity = event.identity if isinstance(event, Undecodable) else identify(event.object)
        if event.type is EventType.DELETED:
            listing.forget(identity.key)
        elif isinstance(event, Undecodable):
            listing.keep(identity)
        else:
            listing.put(identity, event.object)
        return []

    def _follow(self, event: WatchEvent[T]) -> list[Change[T]]:
        if isinstance(event, Bookmark):
            self._move_to(event.resource_version)
            return []
        if isinstance(event, ObjectEvent):
            self._move_to(identify(event.object).resource_version)
            return self.cache.learn(event)
        self._move_to(event.identity.resource_version)
        return self.cache.forget(event.identity.key) if event.type is EventType.DELETED else []

    def _complete(self, listing: Listing[T], resource_version: str) -> list[Change[T]]:
        self._move_to(resource_version)
        self._listing = None
        self.is_complete = True
        return self.cache.replace(listing)

    def _move_to(self, resource_version: str) -> None:
        self.position = msgspec.structs.replace(self.position, resource_version=resource_version)
        self._progressed = True
