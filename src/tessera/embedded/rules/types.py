"""What is known about a value before there is one.

`dyn` is anything: what it really is shows when the rule is decided. The names are CEL's, as its refusals spell them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import msgspec


class Field(NamedTuple):
    """A field of an object: its key in JSON, which need not be a name in CEL, and what it holds."""

    key: str
    type: "Type"


class Type(msgspec.Struct, frozen=True):
    """`parameters` are those of a list, a map or an optional. `fields` are an object's, by their names in CEL."""

    name: str
    parameters: "tuple[Type, ...]" = ()
    fields: Mapping[str, Field] | None = None

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.parameters))
        return f"{self.name}({inner})" if inner else self.name

    @classmethod
    def with_fields(cls, fields: Mapping[str, Field]) -> Self:
        return cls("object", (), fields)


DYN = Type("dyn")
BOOL = Type("bool")
INT = Type("int")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
NULL = Type("null_type")
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")
QUANTITY = Type("quantity")
TYPE = Type("type")


def list_of(items: Type) -> Type:
    return Type("list", (items,))


def map_of(keys: Type, values: Type) -> Type:
    return Type("map", (keys, values))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


LIST = list_of(DYN)
MAP = map_of(DYN, DYN)
OPTIONAL = optional_of(DYN)


def may_be(given: Type, wanted: Type) -> bool:
    """Whether a value of the one type could also be of the other. null is let in anywhere: fields may be nullable."""
    if DYN in (given, wanted) or NULL in (given, wanted):
        return True
    names = {given.name, wanted.name}
    if names == {"object"}:
        return given.fields is wanted.fields
    if names == {"object", "map"}:
        return True
    return len(names) == 1 and all(map(may_be, given.parameters, wanted.parameters))


def either_of(types: Sequence[Type]) -> Type:
    """What is known of a value that has one of these types; `dyn` where nothing is."""
    known = [one for one in types if one != NULL]
    if not known:
        return DYN
    first = known[0]
    if all(one == first for one in known):
        return first
    if len({one.name for one in known}) > 1 or not first.parameters:
        return DYN
    return Type(first.name, tuple(either_of(column) for column in zip(*(one.parameters for one in known), strict=True)))


def part_of(whole: Type, index: int = -1) -> Type:
    """What a list, a map or an optional holds: its last parameter, or another."""
    return whole.parameters[index] if whole.parameters else DYN
