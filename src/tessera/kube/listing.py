"""Lists, page by page.

A page decodes as a whole. If it does not, it is taken apart, so that one odd object is told and the others are kept.
"""

from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from tessera.errors import UnreadableReply
from tessera.kube.kinds import Kind
from tessera.kube.objects import AnyObject, identify
from tessera.kube.watching import EventType, Undecodable

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """`next` continues where this page ends; it is empty on the last. `undecodable` does not fit the kind's type."""

    items: tuple[T, ...]
    resource_version: str
    next: str = ""
    undecodable: tuple[Undecodable, ...] = ()


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    next: str = msgspec.field(default="", name="continue")


class _Listed(msgspec.Struct, Generic[T], frozen=True):
    metadata: _ListMetadata
    items: list[T] | None = None


def read_page(kind: Kind[T], body: bytes, target: str) -> Page[T]:
    try:
        listed = _page_decoder(kind.shape).decode(body)
    except msgspec.ValidationError:
        return _read_one_by_one(kind, body, target)
    except msgspec.MsgspecError as error:
        raise UnreadableReply(f"list {target}: cannot be read as a list: {error}") from None
    return Page(tuple(listed.items or ()), listed.metadata.resource_version, listed.metadata.next)


def join_pages(pages: list[Page[T]]) -> Page[T]:
    """The pages of one list. All have the resourceVersion of the first."""
    return Page(
        tuple(item for page in pages for item in page.items),
        pages[0].resource_version,
        undecodable=tuple(odd for page in pages for odd in page.undecodable),
    )


def _read_one_by_one(kind: Kind[T], body: bytes, target: str) -> Page[T]:
    try:
        listed = _page_decoder(msgspec.Raw).decode(body)
    except msgspec.MsgspecError as error:
        raise UnreadableReply(f"list {target}: cannot be read as a list: {error}") from None
    items: list[T] = []
    odd: list[Undecodable] = []
    for raw in listed.items or ():
        try:
            items.append(kind.decode(raw, target))
        except UnreadableReply as error:
            identity = identify(msgspec.json.decode(raw, type=AnyObject))
            odd.append(Undecodable(EventType.ADDED, identity, str(error)))
    return Page(tuple(items), listed.metadata.resource_version, listed.metadata.next, tuple(odd))


@lru_cache(maxsize=256)
def _page_decoder(shape: type[Any]) -> msgspec.json.Decoder[_Listed[Any]]:
    return msgspec.json.Decoder(_Listed[shape])
