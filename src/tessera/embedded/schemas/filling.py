"""Defaults for what is absent. A null gives way to a default, stays where it is allowed, and goes otherwise."""

from operator import is_
from typing import TYPE_CHECKING, Any, cast

from msgspec import UNSET

from tessera.embedded.documents import Document, copied
from tessera.embedded.schemas.paths import COMPOUND

if TYPE_CHECKING:
    from tessera.embedded.schemas.schema import Schema


def defaulted(schema: "Schema", value: Any) -> Any:
    if isinstance(value, dict):
        return _filled_object(schema, cast("Document", value))
    if schema.items is not None and isinstance(value, list):
        before = cast("list[Any]", value)
        after: list[Any] = [_filled(schema.items, part) for part in before]
        return before if all(map(is_, before, after)) else after
    return value


def _filled_object(schema: "Schema", before: Document) -> Document:
    after = before
    for key, part in before.items():
        child = schema.children[key]
        if child is None or (part is not None and type(part) not in COMPOUND):
            continue
        filled = _filled(child, part)
        if filled is part and (part is not None or child.is_nullable):
            continue
        after = dict(before) if after is before else after
        if filled is None:
            del after[key]
        else:
            after[key] = filled
    for name, default in schema.children.defaults.items():
        if name not in before:
            after = dict(before) if after is before else after
            after[name] = _filled(cast("Schema", schema.children[name]), copied(default))
    return after


def _filled(schema: "Schema", value: Any) -> Any:
    is_replaced = value is None and not schema.is_nullable and schema.default is not UNSET
    return defaulted(schema, copied(schema.default) if is_replaced else value)
