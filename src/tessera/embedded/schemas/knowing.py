"""Fields that a schema does not know: naming them, and leaving them out."""

from operator import is_
from typing import TYPE_CHECKING, Any, cast

from tessera.embedded.documents import Document
from tessera.embedded.schemas.paths import COMPOUND, Step, written

if TYPE_CHECKING:
    from tessera.embedded.schemas.schema import Schema


def unknown_fields(schema: "Schema", document: Any) -> list[str]:
    found: list[str] = []
    _look(schema, document, [], found)
    return sorted(found)


def _look(schema: "Schema", value: Any, steps: list[Step], found: list[str]) -> None:
    if type(value) is dict:
        children = schema.children
        for key, part in cast("Document", value).items():
            child = children[key]
            if child is None:
                if not schema.preserves_unknown:
                    found.append(written([*steps, key]))
            elif type(part) in COMPOUND:
                steps.append(key)
                _look(child, part, steps, found)
                steps.pop()
    elif schema.items is not None and type(value) is list:
        for index, part in enumerate(cast("list[Any]", value)):
            if type(part) in COMPOUND:
                steps.append(index)
                _look(schema.items, part, steps, found)
                steps.pop()


def pruned(schema: "Schema", value: Any) -> Any:
    if isinstance(value, dict):
        return _pruned_object(schema, cast("Document", value))
    if schema.items is not None and isinstance(value, list):
        before = cast("list[Any]", value)
        after: list[Any] = [pruned(schema.items, part) for part in before]
        return before if all(map(is_, before, after)) else after
    return value


def _pruned_object(schema: "Schema", before: Document) -> Document:
    after = before
    for key, part in before.items():
        child = schema.children[key]
        if child is None:
            if not schema.preserves_unknown:
                after = dict(before) if after is before else after
                del after[key]
        elif type(part) in COMPOUND:
            kept = pruned(child, part)
            if kept is not part:
                after = dict(before) if after is before else after
                after[key] = kept
    return after
