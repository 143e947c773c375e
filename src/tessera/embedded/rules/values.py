"""Values that JSON does not have, and what it means for two values to be equal.

Python thinks that True is 1. CEL does not, inside of lists and maps neither. An int and a double may well be equal.
"""

from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, NamedTuple, cast

from tessera.embedded.rules import types
from tessera.embedded.rules.mistakes import RuleFailed
from tessera.embedded.rules.types import Type

LEAST_INT, LARGEST_INT = -(2**63), 2**63 - 1
KEYS = frozenset((str, int, bool, float))
"""Of which types a key of a map may be, as Python has them."""


class Perhaps:
    """An optional value. Compared by what it holds."""

    __slots__ = ("has_value", "held")

    def __init__(self, held: Any, has_value: bool = True) -> None:
        self.held = held
        self.has_value = has_value

    def value(self) -> Any:
        if not self.has_value:
            raise RuleFailed("optional.none() dereference")
        return self.held

    def value_or(self, other: Any) -> Any:
        return self.held if self.has_value else other


NOTHING = Perhaps(None, has_value=False)


class Quantity(NamedTuple):
    exact: Fraction


class TypeName(NamedTuple):
    """What `type(x)` gives."""

    name: str


TYPES: dict[type[Any], Type] = {
    bool: types.BOOL,
    int: types.INT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    list: types.LIST,
    dict: types.MAP,
    datetime: types.TIMESTAMP,
    timedelta: types.DURATION,
    Quantity: types.QUANTITY,
    TypeName: types.TYPE,
    Perhaps: types.OPTIONAL,
}


def type_of(value: Any) -> Type:
    """As seen when the rule is decided, where nobody asks what a list holds."""
    known = TYPES.get(cast("type[Any]", type(value)))
    return known if known is not None else types.MAP if isinstance(value, dict) else types.DYN


def is_equal(one: Any, other: Any) -> bool:
    kind, other_kind = cast("type[Any]", type(one)), cast("type[Any]", type(other))
    if kind is not other_kind:
        return {kind, other_kind} == {int, float} and one == other
    if kind is list:
        return len(one) == len(other) and all(map(is_equal, one, other))
    if kind is dict:
        return _are_equal_maps(one, other)
    if kind is Perhaps:
        return one is other or (one.has_value == other.has_value and is_equal(one.held, other.held))
    return one == other


def _are_equal_maps(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    return one.keys() == other.keys() and all(is_equal(value, other[key]) for key, value in one.items())


def whole(number: int) -> int:
    """An int as CEL has them, of 64 bits."""
    if LEAST_INT <= number <= LARGEST_INT:
        return number
    raise RuleFailed("integer overflow")
