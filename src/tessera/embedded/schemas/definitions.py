"""Schemas of custom resources: whether one is structural, and what it is when it is.

Structural means that every value has one type, said outside of `anyOf` and its like, so that pruning and defaulting
know what they are at. Fields are named as in a definition whose versions share one schema.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.schemas.builtin import JSON_SCHEMA_PROPS
from tessera.embedded.schemas.patterns import compiled
from tessera.embedded.schemas.schema import TYPE_META, Schema, schema_named

SHARED = "spec.validation.openAPIV3Schema"
"""Where the schema is, if all versions have the same."""

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNTYPED = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
_UNTYPED_MESSAGES = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_NEVER = ("$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties")
_OUTSIDE_ONLY = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_EITHER = [{"type": "integer"}, {"type": "string"}]
"""May stand in `anyOf` beside x-kubernetes-int-or-string: it says the same."""


class NotStructural(Exception):
    def __init__(self, found: list[Cause]) -> None:
        super().__init__(f"the schema is not structural: {found[0].field}: {found[0].message}")
        self.causes = found


def read_definition(schema: Frozen, at: str = SHARED) -> Schema:
    """The schema of a version, with the fields that every object has. Raises NotStructural with all that is wrong."""
    if found := list(_whole_complaints(schema, at, "root")):
        raise NotStructural(sorted(found, key=lambda cause: (cause.field, cause.message)))
    fields = {**schema.get("properties", {}), **TYPE_META}
    made = Schema({**schema, "properties": fields}, is_custom=True)
    if found := list(_wrong_defaults(made, at)):
        raise NotStructural(found)
    return made


def _whole_complaints(raw: Any, at: str, level: str) -> Iterator[Cause]:
    """Of a schema that nobody has looked at: the type of a definition leaves open what elements and others may be."""
    if misfits := schema_named(JSON_SCHEMA_PROPS).mismatches(raw):
        yield from (cause._replace(field=f"{at}.{cause.field}") for cause in misfits)
    else:
        yield from _complaints(raw, at, level)


def _complaints(raw: Frozen, at: str, level: str) -> Iterator[Cause]:
    yield from _type_complaints(raw, at, level)
    yield from _list_complaints(raw, at)
    yield from _value_complaints(raw, at)
    for word in _NEVER:
        if word in raw:
            yield causes.forbidden(f"{at}.{word}", f"{word} is not supported")
    if raw.get("uniqueItems"):
        yield causes.forbidden(
            f"{at}.uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        )
    rest = raw.get("additionalProperties")
    if rest is not None and level == "root":
        yield causes.forbidden(f"{at}.additionalProperties", "must not be used at the root")
    if rest is False:
        yield causes.forbidden(f"{at}.additionalProperties", "additionalProperties cannot be set to false")
    if raw.get("properties") and rest is not None:
        yield causes.forbidden(f"{at}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if rest is not None and not isinstance(rest, bool):
        yield from _whole_complaints(rest, f"{at}.additionalProperties", "field")
    if raw.get("items") is not None:
        yield from _whole_complaints(raw["items"], f"{at}.items", "item")
    for name, field in _fields(raw):
        yield from _complaints(field, f"{at}.properties[{name}]", "field")


def _type_complaints(raw: Frozen, at: str, level: str) -> Iterator[Cause]:
    kind = raw.get("type", "")
    if not kind and not any(raw.get(word) for word in _UNTYPED):
        yield causes.required(f"{at}.type", _UNTYPED_MESSAGES[level])
    elif kind and kind not in _TYPES:
        yield causes.not_supported(f"{at}.type", kind, _TYPES)
    elif kind and level == "root" and kind != "object":
        yield causes.invalid(f"{at}.type", kind, "must be object at the root")
    if raw.get("x-kubernetes-embedded-resource") and kind != "object":
        yield causes.invalid(f"{at}.type", kind, "must be object if x-kubernetes-embedded-resource is true")
    if kind == "array" and raw.get("items") is None:
        yield causes.required(f"{at}.items", "must be specified")


def _list_complaints(raw: Frozen, at: str) -> Iterator[Cause]:
    kind = raw.get("x-kubernetes-list-type")
    if kind is not None and kind not in ("atomic", "map", "set"):
        yield causes.not_supported(f"{at}.x-kubernetes-list-type", kind, ("atomic", "map", "set"))
    if kind is not None and raw.get("type") != "array":
        yield causes.invalid(f"{at}.type", raw.get("type", ""), "must be array if x-kubernetes-list-type is specified")
    keys = raw.get("x-kubernetes-list-map-keys", ())
    if kind == "map" and not keys:
        message = "must not be empty if x-kubernetes-list-type is map"
        yield causes.required(f"{at}.x-kubernetes-list-map-keys", message)
    items: Frozen = raw["items"] if isinstance(raw.get("items"), Mapping) else {}
    fields = dict(_fields(items))
    for key in keys:
        key_field = fields.get(key)
        if key_field is None:
            message = "entries must all be names of item properties"
            yield causes.invalid(f"{at}.x-kubernetes-list-map-keys", keys, message)
        elif "default" not in key_field and key not in items.get("required", ()):
            message = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield causes.required(f"{at}.items.properties[{key}].default", message)


def _value_complaints(raw: Frozen, at: str) -> Iterator[Cause]:
    """Of what restricts values: patterns that are none, and what `anyOf` and its like must not say."""
    if "pattern" in raw:
        try:
            compiled(raw["pattern"])
        except re.error as broken:
            message = f"must be a valid regular expression, but isn't: {broken}"
            yield causes.invalid(f"{at}.pattern", raw["pattern"], message)
    for place, branch in _branches(raw, at):
        yield from _branch_complaints(branch, place)


def _branches(raw: Frozen, at: str) -> Iterator[tuple[str, Frozen]]:
    for word in ("allOf", "anyOf", "oneOf"):
        branches: list[Any] = raw.get(word) or []
        if not (word == "anyOf" and branches == _EITHER):
            yield from ((f"{at}.{word}[{index}]", branch) for index, branch in enumerate(branches))
    if "not" in raw:
        yield f"{at}.not", raw["not"]


def _branch_complaints(raw: Frozen, at: str) -> Iterator[Cause]:
    for word, message in _OUTSIDE_ONLY.items():
        if raw.get(word) not in (None, "", False, [], ()):
            yield causes.forbidden(f"{at}.{word}", message)
    yield from _value_complaints(raw, at)
    if isinstance(raw.get("items"), Mapping):
        yield from _branch_complaints(raw["items"], f"{at}.items")
    for name, field in _fields(raw):
        yield from _branch_complaints(field, f"{at}.properties[{name}]")


def _fields(raw: Frozen) -> Iterator[tuple[str, Frozen]]:
    yield from cast("Frozen", raw.get("properties") or {}).items()


def _wrong_defaults(schema: Schema, at: str) -> Iterator[Cause]:
    """A default must be what its own schema allows."""
    if "default" in schema.raw:
        for cause in schema.violations(schema.defaulted(schema.raw["default"])):
            yield cause._replace(field=f"{at}.default{'.' if cause.field else ''}{cause.field}")
    places = {f"{at}.properties[{name}]": schema.child(name) for name, _ in _fields(schema.raw)}
    places |= {f"{at}.items": schema.items, f"{at}.additionalProperties": _additional(schema.raw)}
    for place, part in places.items():
        if part is not None and part.is_custom:
            yield from _wrong_defaults(part, place)


def _additional(raw: Document | Frozen) -> Schema | None:
    rest = raw.get("additionalProperties")
    return Schema(cast("Frozen", rest), is_custom=True) if isinstance(rest, Mapping) else None
