"""Values of the wrong type in a built-in kind, told as the decoder of a real server tells them.

It names the struct and the fields that lead to the value; neither places in lists nor keys of maps.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from tessera.embedded.documents import Document
from tessera.embedded.refusals import Cause
from tessera.embedded.schemas.paths import COMPOUND, Step, written

if TYPE_CHECKING:
    from tessera.embedded.schemas.schema import Schema

_SEEN: dict[type, str] = {str: "string", bool: "bool", dict: "object", list: "array"}
_WANTED = {
    "string": "string",
    "integer": "int32",
    "number": "float64",
    "boolean": "bool",
    "int-or-string": "intstr.IntOrString",
}


def mismatches(schema: "Schema", document: Any) -> list[Cause]:
    found: list[tuple[Step, ...]] = []
    if schema.is_custom:
        metadata = schema.children["metadata"]
        if metadata is not None and "metadata" in document:
            _check(metadata, document["metadata"], ["metadata"], found)
    else:
        _check(schema, document, [], found)
    return [_told(schema, document, steps) for steps in found]


def _check(schema: "Schema", value: Any, steps: list[Step], found: list[tuple[Step, ...]]) -> None:
    """A null reads as something absent, except in a list."""
    if schema.accepted is not None and type(value) not in schema.accepted:
        found.append(tuple(steps))
    elif type(value) is dict:
        children = schema.children
        for key, part in cast("Document", value).items():
            child = children[key]
            if child is not None and part is not None:
                _check_part(child, part, key, steps, found)
    elif type(value) is list:
        items = schema.items
        for index, part in enumerate(cast("list[Any]", value) if items else ()):
            _check_part(cast("Schema", items), part, index, steps, found)
    elif schema.readable is not None and not schema.readable.is_so(value):
        found.append(tuple(steps))


def _check_part(child: "Schema", part: object, step: Step, steps: list[Step], found: list[tuple[Step, ...]]) -> None:
    """Plain values of the right type, which most are, need no more than a look."""
    kind = type(part)
    needs_more = kind in COMPOUND or child.readable is not None
    if not needs_more and (child.accepted is None or kind in child.accepted):
        return
    steps.append(step)
    _check(child, part, steps, found)
    steps.pop()


def _told(root: "Schema", document: Any, steps: Sequence[Step]) -> Cause:
    schema, value, owner, named = root, document, root.name, list[str]()
    for step in steps:
        if isinstance(step, str) and step in schema.raw.get("properties", {}):
            owner = schema.name or owner
            named.append(step)
        schema, value = cast("Schema", schema.child(step)), value[step]
    if schema.readable and schema.accepted and type(value) in schema.accepted:
        return Cause("FieldValueInvalid", schema.readable.complaint(value), written(steps))
    where = f"{_short(owner)}.{'.'.join(named)}"
    message = f"json: cannot unmarshal {_seen(value)} into Go struct field {where} of type {_wanted(schema)}"
    return Cause("FieldValueTypeInvalid", message, written(steps))


def _seen(value: object) -> str:
    if value is None:
        return "null"
    kind = type(value)
    return _SEEN.get(kind, f"number {value}" if kind is float else "number")


def _wanted(schema: "Schema") -> str:
    if schema.name:
        return f"v1.{_short(schema.name)}"
    if schema.items is not None:
        return f"[]{_wanted(schema.items)}"
    if schema.type == "object":
        return "map[string]string"
    return _WANTED.get(schema.type or "", "string")


def _short(name: str) -> str:
    return name.rpartition(".")[2]
