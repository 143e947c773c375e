"""A structural OpenAPI v3 schema: one form for built-in kinds and for custom resources.

A schema is made of its raw form once, and its parts when they are first asked for: of the several hundred types behind
a Deployment a request touches a dozen. Walking a document then costs one look-up for each field.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, cast

from msgspec import UNSET

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import Cause
from tessera.embedded.schemas.builtin import OBJECT_META, reference_to, referred_by, type_name_of, type_named
from tessera.embedded.schemas.constraints import Constraints, constraints_of
from tessera.embedded.schemas.filling import defaulted
from tessera.embedded.schemas.fitting import mismatches
from tessera.embedded.schemas.formats import READABLE, Readable
from tessera.embedded.schemas.knowing import pruned, unknown_fields
from tessera.embedded.schemas.violations import violations

TYPE_META: Document = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": reference_to(OBJECT_META),
}
"""The fields that every object has, also one that is embedded in another."""

_ACCEPTED: Mapping[str | None, frozenset[type] | None] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "array": frozenset({list}),
    "object": frozenset({dict}),
    "int-or-string": frozenset({int, str}),
    "quantity": frozenset({int, float, str}),
    None: None,
}


class Children(dict[str, "Schema | None"]):
    """The fields of a type by name, made when first asked for; whoever is not declared is as `additional` says."""

    __slots__ = ("_additional", "_declared", "_is_custom", "defaults")

    def __init__(self, raw: Frozen, is_custom: bool) -> None:
        super().__init__()
        self._is_custom = is_custom
        self._declared: Frozen = raw.get("properties") or {}
        if raw.get("x-kubernetes-embedded-resource"):
            self._declared = {**self._declared, **TYPE_META}
        self._additional = _additional(raw.get("additionalProperties"), is_custom)
        self.defaults = {name: field["default"] for name, field in self._declared.items() if "default" in field}

    def __missing__(self, name: str) -> "Schema | None":
        if name not in self._declared:
            return self._additional
        made = self[name] = schema_from(self._declared[name], is_custom=self._is_custom)
        return made


class Schema:
    """What a value may be. `raw` is the schema as OpenAPI shows it, with what it refers to in place.

    Whoever asks these methods gives the document away: what comes back shares with it what was not changed.
    """

    def __init__(self, raw: Frozen, *, is_custom: bool, name: str = "", children: Children | None = None) -> None:
        self.raw = raw
        self.name = name
        self.is_custom = is_custom
        self.children = Children(raw, is_custom) if children is None else children
        self.is_int_or_string: bool = raw.get("x-kubernetes-int-or-string", False)
        self.type: str | None = "int-or-string" if self.is_int_or_string else raw.get("type")
        self.format: str = raw.get("format", "")
        self.accepted = _ACCEPTED["quantity" if self.format == "quantity" else self.type]
        self.readable: Readable | None = READABLE.get(self.format)
        self.required: tuple[str, ...] = tuple(raw.get("required") or ())
        if raw.get("x-kubernetes-embedded-resource"):
            self.required += ("apiVersion", "kind")
        self.is_nullable: bool = raw.get("nullable", False)
        self.preserves_unknown: bool = raw.get("x-kubernetes-preserve-unknown-fields", False)
        self.default: Any = raw.get("default", UNSET)
        self.list_type: Literal["atomic", "map", "set"] = raw.get("x-kubernetes-list-type", "atomic")
        self.list_keys: tuple[str, ...] = tuple(raw.get("x-kubernetes-list-map-keys", ()))
        self.map_type: Literal["atomic", "granular"] = raw.get("x-kubernetes-map-type", "granular")
        self.patch_strategy: str = raw.get("x-kubernetes-patch-strategy", "")
        self.patch_merge_key: str = raw.get("x-kubernetes-patch-merge-key", "")
        self._items: Schema | None = None
        self._constraints: Constraints | None = None
        self._branches: dict[str, tuple[Schema, ...]] | None = None

    def child(self, step: str | int) -> "Schema | None":
        """Of a field, of any element of a list, or of any value of a map; None if nothing is known about it."""
        return self.items if isinstance(step, int) else self.children[step]

    @property
    def items(self) -> "Schema | None":
        if self._items is None and isinstance(self.raw.get("items"), dict):
            self._items = schema_from(self.raw["items"], is_custom=self.is_custom)
        return self._items

    @property
    def constraints(self) -> Constraints:
        if self._constraints is None:
            self._constraints = constraints_of(self.raw) if self.is_custom else {}
        return self._constraints

    @property
    def branches(self) -> "dict[str, tuple[Schema, ...]]":
        """The schemas of which all, any, one or none must hold, by the word that says so."""
        if self._branches is None:
            lists = {word: self.raw[word] for word in ("allOf", "anyOf", "oneOf") if word in self.raw}
            lists |= {"not": [self.raw["not"]]} if "not" in self.raw else {}
            self._branches = {word: tuple(Schema(raw, is_custom=True) for raw in raws) for word, raws in lists.items()}
        return self._branches

    def mismatches(self, document: Any) -> list[Cause]:
        """Values that cannot be read as what they should be, which is a bad request; none in the parts of a custom
        resource that its definition describes, where they are violations."""
        return mismatches(self, document)

    def unknown_fields(self, document: Any) -> list[str]:
        """Paths as Kubernetes writes them: `spec.containers[0].foo`."""
        return unknown_fields(self, document)

    def pruned(self, document: Document) -> Document:
        """Without the unknown fields."""
        return cast("Document", pruned(self, document))

    def defaulted(self, document: Document) -> Document:
        """With defaults for what is absent, and without nulls where null is not allowed."""
        return cast("Document", defaulted(self, document))

    def violations(self, document: Any) -> list[Cause]:
        """What makes the document invalid: of a built-in kind required fields alone, its strategy knows the rest."""
        return violations(self, document)


def _additional(said: Frozen | bool | None, is_custom: bool) -> Schema | None:
    """What fields may be that are not declared: of a schema, anything, or none at all."""
    if said is None or said is False:
        return None
    return schema_from({} if said is True else said, is_custom=is_custom)


def schema_from(raw: Frozen, *, is_custom: bool) -> Schema:
    """Types that are referred to are shared; what is said beside the reference belongs to one place."""
    name = referred_by(raw)
    if name is None:
        return Schema(raw, is_custom=is_custom)
    shared = schema_named(name)
    beside = {key: value for key, value in raw.items() if key != "$ref"}
    if not beside:
        return shared
    return Schema({**shared.raw, **beside}, is_custom=False, name=shared.name, children=shared.children)


@cache
def schema_named(name: str) -> Schema:
    return Schema(type_named(name), is_custom=False, name=name)


def builtin_schema(kind: Kind) -> Schema | None:
    name = type_name_of(kind.api_version, kind.kind)
    return schema_named(name) if name else None
