"""Which fields a document has, which an apply states, and which differ between two documents."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from tessera.embedded.documents import Document
from tessera.embedded.ownership.fields import SELF, Fields, spoken
from tessera.embedded.ownership.shapes import UNDESCRIBED, Shape


class Changes(NamedTuple):
    written: Fields
    """Added, or of another value than before."""
    removed: Fields


def everything(value: Any, shape: Shape) -> Fields:
    """A value and all that is in it."""
    if isinstance(value, dict):
        if shape.is_atomic_map or not value:
            return {}
        fields: Fields = {SELF: {}}
        for name, below in cast("Document", value).items():
            fields["f:" + name] = everything(below, shape.field(name)) if isinstance(below, (dict, list)) else {}
        return fields
    if isinstance(value, list) and value and not shape.is_atomic_list:
        listed: Fields = {SELF: {}}
        for step, item in shape.elements(cast("list[Any]", value)):
            listed[step] = {} if step in listed else everything(item, shape.item)
        return listed
    return {}


def stated(value: Any, shape: Shape) -> Fields:
    """What somebody claims who applies this.

    An object on the way to a field is not claimed with it; an element, or a key that the user chose, is. What is
    empty is claimed as such: Kubernetes claims no empty list, and so forgets it the next time.
    """
    if isinstance(value, dict) and not shape.is_atomic_map:
        fields: Fields = {}
        for name, below in cast("Document", value).items():
            node = stated(below, shape.field(name))
            fields["f:" + name] = node if shape.declares(name) else _claimed(node)
        return fields
    if isinstance(value, list) and not shape.is_atomic_list:
        elements = shape.elements(cast("list[Any]", value))
        return {step: _claimed(stated(item, shape.item)) for step, item in elements}
    return {}


def _claimed(node: Fields) -> Fields:
    return {SELF: {}, **node} if node else node


def compare(before: Document, after: Document, shape: Shape) -> Changes:
    written, removed = _compare(before, after, shape)
    return Changes(written or {}, removed or {})


def _compare(before: Any, after: Any, shape: Shape) -> tuple[Fields | None, Fields | None]:
    """None is no field at all; an empty node is this one and nothing below it."""
    if before == after:
        return None, None
    old, new = _parts(before, shape), _parts(after, shape)
    if old is None or new is None:
        gone = everything(before, shape)
        return everything(after, shape), {step: node for step, node in gone.items() if step != SELF} or None
    written: Fields = {}
    removed: Fields = {}
    for step, (value, below) in new.items():
        if step not in old:
            written[step] = everything(value, below)
            continue
        more, less = _compare(old[step][0], value, below)
        if more is not None:
            written[step] = more
        if less is not None:
            removed[step] = less
    for step, (value, below) in old.items():
        if step not in new:
            removed[step] = everything(value, below)
    return written or None, removed or None


def _parts(value: Any, shape: Shape) -> dict[str, tuple[Any, Shape]] | None:
    """What is owned one by one, each by its step; None for what is owned as a whole.

    Elements that share a step are one part, a tuple, which is owned as a whole.
    """
    if isinstance(value, dict) and not shape.is_atomic_map:
        return {"f:" + name: (below, shape.field(name)) for name, below in cast("Document", value).items()}
    if not isinstance(value, list) or shape.is_atomic_list:
        return None
    parts: dict[str, tuple[Any, Shape]] = {}
    for step, item in shape.elements(cast("list[Any]", value)):
        parts[step] = ((parts[step][0], item), UNDESCRIBED) if step in parts else (item, shape.item)
    return parts


def repeated(value: Any, shape: Shape, above: str = "") -> Iterator[tuple[str, str]]:
    """Every list in which two elements share a key, and that key, as people are told."""
    if isinstance(value, dict) and not shape.is_atomic_map:
        for name, below in cast("Document", value).items():
            yield from repeated(below, shape.field(name), above + spoken("f:" + name))
    elif isinstance(value, list) and not shape.is_atomic_list:
        seen: set[str] = set()
        for step, item in shape.elements(cast("list[Any]", value)):
            if step in seen:
                yield above, spoken(step)
            seen.add(step)
            yield from repeated(item, shape.item, above + spoken(step))
