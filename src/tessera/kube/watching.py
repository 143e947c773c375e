"""A watch, from bytes to decoded events.

Events come as lines of JSON. Each is decoded straight into the kind's own type; only what does not fit is looked at
again, part by part: a bookmark has hardly any fields, an error is a Status, and an object that does not decode is told
apart from both. Such an object never ends a watch: one odd object must not blind us to all others.
"""

from collections.abc import AsyncIterable, AsyncIterator
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from tessera.errors import UnreadableReply
from tessera.kube.kinds import Kind
from tessera.kube.objects import AnyObject, Identity, identify
from tessera.kube.requests import Request, read_error

T = TypeVar("T")
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class ObjectEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    type: EventType
    object: T


class Bookmark(msgspec.Struct, frozen=True):
    """Everything up to this resourceVersion has been told. `is_synced` ends the initial events."""

    resource_version: str
    is_synced: bool


class Undecodable(msgspec.Struct, frozen=True):
    """An event whose object does not fit the kind's type."""

    type: EventType
    identity: Identity
    problem: str


WatchEvent = ObjectEvent[T] | Bookmark | Undecodable


class _RawEvent(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _BookmarkMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    annotations: dict[str, str] | None = None


class _BookmarkObject(msgspec.Struct, frozen=True):
    metadata: _BookmarkMetadata


class LineSplitter:
    """Puts lines together from pieces of any size. What follows the last newline waits for the rest of it."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes, without their newlines."""
        head, *lines = piece.split(b"\n")
        self._pending.append(head)
        if not lines:
            return []
        first = b"".join(self._pending)
        self._pending = [lines.pop()]
        return [first, *lines]

    def rest(self) -> bytes:
        """What came after the last newline."""
        return b"".join(self._pending)


class EventDecoder(Generic[T]):
    def __init__(self, kind: Kind[T], request: Request) -> None:
        self._kind = kind
        self._request = request
        self._whole = msgspec.json.Decoder(ObjectEvent[kind.shape])
        self._raw = msgspec.json.Decoder(_RawEvent)

    def decode(self, line: bytes) -> WatchEvent[T]:
        """Raises what the API server says in an ERROR event, and UnreadableReply for what is no event."""
        try:
            return self._whole.decode(line)
        except msgspec.ValidationError as error:
            return self._decode_parts(line, str(error))
        except msgspec.MsgspecError as error:
            raise UnreadableReply(f"watch {self._request.target}: got a line that is no event: {error}") from None

    def _decode_parts(self, line: bytes, problem: str) -> WatchEvent[T]:
        try:
            raw = self._raw.decode(line)
            if raw.type == "BOOKMARK":
                return _read_bookmark(raw.object)
            if raw.type == "ERROR":
                raise read_error(self._request, raw.object)
            identity = identify(msgspec.json.decode(raw.object, type=AnyObject))
            return Undecodable(EventType(raw.type), identity, problem)
        except (msgspec.MsgspecError, ValueError):
            raise UnreadableReply(f"watch {self._request.target}: got an event that is none: {problem}") from None


async def read_events(chunks: AsyncIterable[bytes], decoder: EventDecoder[T]) -> AsyncIterator[WatchEvent[T]]:
    splitter = LineSplitter()
    async for chunk in chunks:
        for line in splitter.feed(chunk):
            if line:
                yield decoder.decode(line)


def _read_bookmark(raw: msgspec.Raw) -> Bookmark:
    metadata = msgspec.json.decode(raw, type=_BookmarkObject).metadata
    is_synced = (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"
    return Bookmark(metadata.resource_version, is_synced)
