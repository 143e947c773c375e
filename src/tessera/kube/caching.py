"""What an informer knows, and what changes when it learns more. No I/O.

A handler sees each key's life without gaps: the `before` of a change is the `after` of the one before it. An object
that was deleted and made again under its name is two changes, whether we watched it happen or found out later. The
same state told twice is no change.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from tessera.kube.objects import Identity, ObjectKey, identify
from tessera.kube.watching import EventType, ObjectEvent

T = TypeVar("T")
IndexBy = Callable[[T], Iterable[str]]
"""The values under which an object is to be found."""


class Change(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """Added (no `before`), deleted (no `after`), or changed."""

    key: ObjectKey
    before: T | None
    after: T | None


class Entry(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object with what tells two states of it apart."""

    uid: str
    resource_version: str
    object: T


Known = dict[ObjectKey, Entry[T]]


def step(key: ObjectKey, before: Entry[T] | None, after: Entry[T] | None) -> list[Change[T]]:
    """What happened to one key between two states of it."""
    if before is None:
        return [] if after is None else [Change(key, None, after.object)]
    if after is None:
        return [Change(key, before.object, None)]
    if before.uid != after.uid:
        return [Change(key, before.object, None), Change(key, None, after.object)]
    if before.resource_version == after.resource_version:
        return []
    return [Change(key, before.object, after.object)]


def compare(before: Mapping[ObjectKey, Entry[T]], after: Mapping[ObjectKey, Entry[T]]) -> list[Change[T]]:
    """What happened while nobody watched. What is gone comes first, so that what it held is free for what is new."""
    gone = [change for key, entry in before.items() if key not in after for change in step(key, entry, None)]
    there = [change for key, entry in after.items() for change in step(key, before.get(key), entry)]
    return gone + there


class Cache(Generic[T]):
    """The objects as they were last seen, and indexes over them."""

    def __init__(self, indexes: Mapping[str, IndexBy[T]] | None = None) -> None:
        self._known: Known[T] = {}
        self._index_by = dict(indexes or {})
        self._indexes: dict[str, dict[str, dict[ObjectKey, None]]] = {name: {} for name in self._index_by}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[T]:
        return (entry.object for entry in self._known.values())

    def get(self, key: ObjectKey) -> T | None:
        entry = self._known.get(key)
        return entry.object if entry else None

    def find(self, index: str, value: str) -> list[T]:
        """The objects that the named index has under a value."""
        return [self._known[key].object for key in self._indexes[index].get(value, ())]

    def entry(self, key: ObjectKey) -> Entry[T] | None:
        return self._known.get(key)

    def learn(self, event: ObjectEvent[T]) -> list[Change[T]]:
        """Take in one event of a watch."""
        identity = identify(event.object)
        if event.type is EventType.DELETED:
            return self.forget(identity.key)
        return self._store(identity.key, Entry(identity.uid, identity.resource_version, event.object))

    def forget(self, key: ObjectKey) -> list[Change[T]]:
        return self._store(key, None)

    def replace(self, listed: "Listing[T]") -> list[Change[T]]:
        """Take in a whole list."""
        changes = compare(self._known, listed.known)
        for key in {change.key: None for change in changes}:
            self._store(key, listed.known.get(key))
        return changes

    def _store(self, key: ObjectKey, after: Entry[T] | None) -> list[Change[T]]:
        before = self._known.get(key)
        changes = step(key, before, after)
        if not changes:
            return changes
        if after is None:
            del self._known[key]
        else:
            self._known[key] = after
        self._index(key, before, after)
        return changes

    def _index(self, key: ObjectKey, before: Entry[T] | None, after: Entry[T] | None) -> None:
        for name, index_by in self._index_by.items():
            index = self._indexes[name]
            old = set(index_by(before.object)) if before else set[str]()
            new = set(index_by(after.object)) if after else set[str]()
            for value in old - new:
                _forget(index, value, key)
            for value in new - old:
                index.setdefault(value, {})[key] = None


class Listing(Generic[T]):
    """Everything there is, on its way in. What the cache has in the same state is taken from there, not held twice."""

    def __init__(self, cache: Cache[T]) -> None:
        self.known: Known[T] = {}
        self._cache = cache

    def put(self, identity: Identity, thing: T) -> None:
        key, uid, resource_version = identity
        cached = self._cache.entry(key)
        if cached is not None and cached.resource_version == resource_version and cached.uid == uid:
            self.known[key] = cached
        else:
            self.known[key] = Entry(uid, resource_version, thing)

    def forget(self, key: ObjectKey) -> None:
        self.known.pop(key, None)

    def keep(self, identity: Identity) -> None:
        """What cannot be decoded is there all the same: what was known of it stays."""
        cached = self._cache.entry(identity.key)
        if cached is not None and cached.uid == identity.uid:
            self.known[identity.key] = cached


def _forget(index: dict[str, dict[ObjectKey, None]], value: str, key: ObjectKey) -> None:
    del index[value][key]
    if not index[value]:
        del index[value]
