"""Which events are worth a write: equal ones are counted, similar ones put together, too many let go. Pure.

Equal are events about one object with the same type, reason and message. Similar are those that differ in the message
only: past a few of them, one event stands for all. And an object that talks without end is heard a few times, then
once in a while, so that no failing pod can fill the API server's store.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Literal, TypeVar

import msgspec

from tessera.kube.timing import TokenBucket

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
EventLevel = Literal["Normal", "Warning"]

MOST_MESSAGE_BYTES = 1024
MOST_SIMILAR = 10
SIMILAR_WITHIN_S = 600.0
BURST = 25.0
REFILL_PER_S = 1 / 300
REMEMBERED = 4096
COMBINED = "(combined from similar events): "


class ObjectReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The object that an event is about. kubectl describe finds its events by the uid."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"
    resource_version: str = ""


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    about: ObjectReference
    level: EventLevel
    reason: str
    message: str


class SeriesKey(msgspec.Struct, frozen=True):
    """The message is empty where one event stands for many."""

    about: ObjectReference
    level: EventLevel
    reason: str
    message: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The event to be written: a new one when it has no name yet, else one more of those that have it."""

    key: SeriesKey
    message: str
    count: int
    name: str = ""


class _Similar(msgspec.Struct):
    messages: set[str]
    last_s: float


class _Remembered(Generic[K, V]):
    """A dict that forgets what was not asked for longest."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._values: OrderedDict[K, V] = OrderedDict()

    def of(self, key: K) -> V:
        value = self._values[key] if key in self._values else self._make()
        self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > REMEMBERED:
            self._values.popitem(last=False)

    def forget(self, key: K) -> None:
        self._values.pop(key, None)


class Correlator:
    """Asked for each occurrence what to write, and told what was written."""

    def __init__(self) -> None:
        self._similar: _Remembered[tuple[ObjectReference, str, str], _Similar] = _Remembered(
            lambda: _Similar(set(), float("-inf"))
        )
        self._buckets: _Remembered[ObjectReference, TokenBucket] = _Remembered(
            lambda: TokenBucket(per_s=REFILL_PER_S, burst=BURST)
        )
        self._written: _Remembered[SeriesKey, tuple[str, int]] = _Remembered(lambda: ("", 0))

    def plan(self, occurrence: Occurrence, now_s: float) -> Entry | None:
        """What to write; None, when this object has said enough for now."""
        about, level, reason = _stable(occurrence.about), occurrence.level, occurrence.reason
        message = shorten(occurrence.message)
        is_combined = self._is_one_of_many((about, level, reason), message, now_s)
        if not self._buckets.of(about).try_take(now_s):
            return None
        key = SeriesKey(about, level, reason, "" if is_combined else message)
        name, count = self._written.of(key)
        shown = shorten(COMBINED + message) if is_combined else message
        return Entry(key=key, message=shown, count=count + 1, name=name)

    def written(self, entry: Entry, name: str) -> None:
        self._written.put(entry.key, (name, entry.count))

    def vanished(self, entry: Entry) -> Entry:
        """The event that was to be counted up is gone, as events are after an hour: write a new one."""
        self._written.forget(entry.key)
        return msgspec.structs.replace(entry, name="", count=1)

    def _is_one_of_many(self, group: tuple[ObjectReference, str, str], message: str, now_s: float) -> bool:
        similar = self._similar.of(group)
        if now_s - similar.last_s > SIMILAR_WITHIN_S:
            similar.messages.clear()
        similar.last_s = now_s
        if message not in similar.messages and len(similar.messages) < MOST_SIMILAR:
            similar.messages.add(message)
        return message not in similar.messages


def shorten(message: str) -> str:
    """The message within what the API server takes, cut between characters."""
    encoded = message.encode()
    if len(encoded) <= MOST_MESSAGE_BYTES:
        return message
    return encoded[: MOST_MESSAGE_BYTES - len("…".encode())].decode(errors="ignore") + "…"


def _stable(about: ObjectReference) -> ObjectReference:
    """The object, whatever state of it was looked at."""
    return msgspec.structs.replace(about, resource_version="")
