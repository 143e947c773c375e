"""What a schema says about a value, as rules can know it.

A field whose name is no name in CEL is written otherwise there: `my-field` as `my__dash__field`. What a schema does not
describe cannot be used in a rule, also where unknown fields are kept.
"""

from collections.abc import Mapping
from typing import Any, cast

from tessera.embedded.documents import Frozen
from tessera.embedded.rules.parsing import NO_NAMES
from tessera.embedded.rules.types import BOOL, DOUBLE, DYN, INT, STRING, Field, Type, list_of, map_of

_SIMPLE = {"string": STRING, "boolean": BOOL, "integer": INT, "number": DOUBLE}
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_TEXT: Frozen = {"type": "string"}
_ALWAYS_NAMED: Frozen = {"name": _TEXT, "generateName": _TEXT}


def type_of_root(raw: Frozen) -> Type:
    """Of a whole object: its version, kind and name can always be used."""
    properties: Frozen = raw.get("properties") or {}
    described: Frozen = properties.get("metadata") or {}
    known: Frozen = described.get("properties") or {}
    metadata: Frozen = {"type": "object", "properties": {**known, **_ALWAYS_NAMED}}
    return type_of_schema(
        {**raw, "properties": {**properties, "apiVersion": _TEXT, "kind": _TEXT, "metadata": metadata}}
    )


def type_of_schema(raw: Frozen) -> Type:
    kind = raw.get("type")
    if kind == "object":
        values: Any = raw.get("additionalProperties")
        return map_of(STRING, type_of_schema(cast("Frozen", values))) if isinstance(values, Mapping) else _object(raw)
    if kind == "array":
        return list_of(type_of_schema(raw.get("items") or {}))
    return _SIMPLE.get(str(kind), DYN)


def _object(raw: Frozen) -> Type:
    properties: Frozen = raw.get("properties") or {}
    if raw.get("x-kubernetes-embedded-resource"):
        return type_of_root({**raw, "x-kubernetes-embedded-resource": False})
    return Type.with_fields({name_of(key): Field(key, type_of_schema(field)) for key, field in properties.items()})


def name_of(key: str) -> str:
    """A field's name in CEL."""
    if key in NO_NAMES:
        return f"__{key}__"
    for part, escaped in _ESCAPES:
        key = key.replace(part, escaped)
    return key
