"""What makes a document invalid by its schema, a cause for each place.

The definition of a custom resource is held to in full. A built-in kind is asked for its required fields only, and not
in its status, which the server takes from components as it comes.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from tessera.embedded import causes
from tessera.embedded.documents import Document
from tessera.embedded.refusals import Cause
from tessera.embedded.schemas.paths import COMPOUND, Step, written

if TYPE_CHECKING:
    from tessera.embedded.schemas.schema import Schema

_NAMES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}


def violations(schema: "Schema", document: Any) -> list[Cause]:
    found: list[Cause] = []
    _check(schema, document if schema.is_custom else _without_status(document), [], found)
    return found


def _without_status(document: Document) -> Document:
    return {key: part for key, part in document.items() if key != "status"} if "status" in document else document


def _check(schema: "Schema", value: object, steps: list[Step], found: list[Cause]) -> None:
    kind = type(value)
    if schema.is_custom:
        if not _is_of_type(schema, value):
            found.append(_wrong_type(schema, value, written(steps)))
            return
        for constraint in schema.constraints.get(kind, ()):
            if not constraint.holds(value):
                found.append(constraint.cause(written(steps), value))
        if schema.branches:
            found += _unmet_branches(schema, value, steps)
    if kind is dict:
        _check_object(schema, cast("Document", value), steps, found)
    elif kind is list and schema.items is not None:
        _check_list(schema, cast("list[Any]", value), steps, found)


def _check_object(schema: "Schema", value: Document, steps: list[Step], found: list[Cause]) -> None:
    for name in schema.required:
        if name not in value:
            found.append(causes.required(written([*steps, name])))
    for key, part in value.items():
        child = schema.children[key]
        if child is not None and (child.is_custom or type(part) in COMPOUND):
            steps.append(key)
            _check(child, part, steps, found)
            steps.pop()


def _check_list(schema: "Schema", value: list[Any], steps: list[Step], found: list[Cause]) -> None:
    items = cast("Schema", schema.items)
    for index, part in enumerate(value):
        steps.append(index)
        _check(items, part, steps, found)
        steps.pop()
    if schema.is_custom and schema.list_type != "atomic":
        found += _duplicates(schema, value, steps)


def _duplicates(schema: "Schema", value: list[Any], steps: list[Step]) -> Iterable[Cause]:
    seen: set[str] = set()
    for index, part in enumerate(value):
        identity = part
        if schema.list_type == "map" and isinstance(part, dict):
            element = cast("Document", part)
            identity = {key: element[key] for key in schema.list_keys if key in element}
        shown = causes.shown(identity)
        if shown in seen:
            yield causes.duplicate(written([*steps, index]), identity)
        seen.add(shown)


def _is_of_type(schema: "Schema", value: Any) -> bool:
    if schema.accepted is None or type(value) in schema.accepted:
        return True
    if value is None:
        return schema.is_nullable
    return schema.type in ("integer", "int-or-string") and isinstance(value, float) and value.is_integer()


def _wrong_type(schema: "Schema", value: Any, path: str) -> Cause:
    wanted = "integer,string" if schema.is_int_or_string else schema.type
    seen = _NAMES[type(value)]
    return causes.type_invalid(path, seen, f'{path} in body must be of type {wanted}: "{seen}"')


def _unmet_branches(schema: "Schema", value: Any, steps: list[Step]) -> Iterable[Cause]:
    path = written(steps)
    for word, branches in schema.branches.items():
        unmet = [_causes_of(branch, value, steps) for branch in branches]
        met = sum(not causes_of for causes_of in unmet)
        if word == "allOf":
            yield from (cause for causes_of in unmet for cause in causes_of)
        elif word == "anyOf" and not met:
            yield causes.invalid(path, "", f'"{path}" must validate at least one schema (anyOf)')
            yield from min(unmet, key=len)
        elif word == "oneOf" and met != 1:
            how_many = f"Found {met} valid alternatives" if met else "Found none valid"
            yield causes.invalid(path, "", f'"{path}" must validate one and only one schema (oneOf). {how_many}')
            yield from () if met else min(unmet, key=len)
        elif word == "not" and met:
            yield causes.invalid(path, "", f'"{path}" must not validate the schema (not)')


def _causes_of(branch: "Schema", value: Any, steps: list[Step]) -> list[Cause]:
    found: list[Cause] = []
    _check(branch, value, list(steps), found)
    return found
