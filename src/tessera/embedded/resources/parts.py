"""Reading and completing the parts of a document, any of which may be absent or null."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from tessera.embedded.documents import Document, Frozen

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def inside(document: Frozen, name: str) -> Frozen:
    """The map of this name, empty where there is none."""
    return cast("Frozen", document.get(name) or _NOTHING)


def each(document: Frozen, name: str) -> Sequence[Any]:
    """The list of this name, empty where there is none."""
    return cast("Sequence[Any]", document.get(name) or ())


def part_of(document: Document, name: str) -> Document:
    """The map of this name, made where there is none."""
    if document.get(name) is None:
        document[name] = {}
    return cast("Document", document[name])


def put_back(new: Document, old: Frozen, name: str) -> None:
    """Make a field what it was, absence included."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def set_defaults(part: Document, **defaults: Any) -> None:
    """Fill in what is absent or null; a default that can be changed must be a new one each time."""
    for name, value in defaults.items():
        if part.get(name) is None:
            part[name] = value
