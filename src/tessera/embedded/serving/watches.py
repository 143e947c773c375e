"""Watches: a line for every change, in order, from the version that was asked for.

A line is made once for all who watch in the same form. Where a selector is given, a change of an object may be its
arrival or its departure.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import ApiRefusal, bad_request, expired
from tessera.embedded.serving import envelopes
from tessera.embedded.serving.answers import Stream, Write
from tessera.embedded.serving.envelopes import encode
from tessera.embedded.serving.forms import Form
from tessera.embedded.serving.options import Options
from tessera.embedded.serving.pages import read_version
from tessera.embedded.serving.selectors import Selection
from tessera.embedded.store import Change, Following, Forgotten, Record, Store

LONGEST_S, SHORTEST_S = 3600.0, 1800.0
"""A watch without a timeout ends at some time between; not all of them at once."""
BOOKMARK_EVERY_S = 60.0
AT_ONCE = 100
"""So many of what is there are sent together, and then others get their turn."""

Render = Callable[[Record], bytes]


class Wanted(NamedTuple):
    """What somebody watches. `resource` is where it is stored."""

    kind: Kind
    resource: str
    namespace: str
    form: Form
    selection: Selection | None
    render: Render


class Event(NamedTuple):
    type: str
    record: Record


class Watches:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def open(self, wanted: Wanted, options: Options) -> Stream:
        """What is wrong with the question is refused at once; what is forgotten is told in the stream."""
        since = read_version(options.resource_version)
        shows_state = _shows_state(options)
        await self._store.settled()
        records = self._state(wanted) if shows_state else ()
        try:
            following = self._follow(wanted, self._store.version if shows_state else since)
        except Forgotten:
            return _ended(expired(f"too old resource version: {since} ({self._store.oldest})"))
        watch = _Watch(wanted, options, following)

        async def run(write: Write) -> None:
            await watch.begin(records, write)
            await watch.follow(write)

        return Stream(run)

    def _follow(self, wanted: Wanted, since: int) -> Following:
        return self._store.follow(wanted.resource, wanted.namespace, since=since)

    def _state(self, wanted: Wanted) -> Sequence[Record]:
        records = self._store.list(wanted.resource, wanted.namespace)
        return [record for record in records if wanted.selection is None or wanted.selection.match_record(record)]


class _Watch:
    def __init__(self, wanted: Wanted, options: Options, following: Following) -> None:
        self._wanted = wanted
        self._options = options
        self._following = following
        self._began_at = following.reached

    async def begin(self, records: Sequence[Record], write: Write) -> None:
        """What is there, each as ADDED, and a mark at its end for those who asked."""
        for first in range(0, len(records), AT_ONCE):
            some = records[first : first + AT_ONCE]
            await write(b"".join([envelopes.event("ADDED", self._wanted.render(record)) for record in some]))
        if self._options.send_initial_events and self._options.allow_bookmarks:
            await write(envelopes.bookmark(self._wanted.kind, self._began_at, ends_initial_events=True))

    async def follow(self, write: Write) -> None:
        now = asyncio.get_running_loop().time
        end = now() + (self._options.timeout_s or random.uniform(SHORTEST_S, LONGEST_S))
        while now() < end:
            try:
                changes = await self._next(min(end, now() + BOOKMARK_EVERY_S))
            except Forgotten:
                await write(_error(expired("the watch was too slow and what it missed is forgotten")))
                return
            if changes is None:
                await self._mark(write)
                continue
            if not changes:
                return
            if lines := [line for change in changes if (line := self._line(change))]:
                await write(b"".join(lines))

    async def _next(self, until: float) -> Sequence[Change] | None:
        """None, if nothing happens until then; nothing, if nothing will happen any more."""
        try:
            async with asyncio.timeout_at(until):
                return await self._following.batch()
        except TimeoutError:
            return None

    def _line(self, change: Change) -> bytes | None:
        """The same bytes for all who watch in this form."""
        event = meaning(change, self._wanted.selection)
        if event is None:
            return None
        what = (event.type, self._wanted.form, self._wanted.kind.api_version)
        return change.once(what, lambda: envelopes.event(event.type, self._wanted.render(event.record)))

    async def _mark(self, write: Write) -> None:
        """Tell how far a quiet watch has come."""
        if self._options.allow_bookmarks:
            version = self._following.reached
            await write(envelopes.bookmark(self._wanted.kind, version, ends_initial_events=False))


def meaning(change: Change, selection: Selection | None) -> Event | None:
    """What a change is to somebody who sees only what the selection matches."""
    before, after = change.before, change.after
    if selection is None:
        shown = after or before
        return Event(change.type, shown) if shown else None
    was = before is not None and selection.match_record(before)
    if after is not None and selection.match_record(after):
        return Event("MODIFIED" if was else "ADDED", after)
    return Event("DELETED", change.last) if was and change.last else None


def _shows_state(options: Options) -> bool:
    if options.send_initial_events is None:
        return options.resource_version in ("", "0")
    if options.send_initial_events and options.resource_version_match != "NotOlderThan":
        raise bad_request("sendInitialEvents needs resourceVersionMatch=NotOlderThan")
    return options.send_initial_events


def _error(refusal: ApiRefusal) -> bytes:
    return envelopes.event("ERROR", encode(refusal.status()))


def _ended(refusal: ApiRefusal) -> Stream:
    async def run(write: Write) -> None:
        await write(_error(refusal))

    return Stream(run)
