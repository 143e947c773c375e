"""Kubernetes' quantities: exact numbers with units."""

import operator
from collections.abc import Callable
from fractions import Fraction

from tessera.embedded.rules.mistakes import RuleFailed
from tessera.embedded.rules.overloads import Overload
from tessera.embedded.rules.types import BOOL, DOUBLE, INT, QUANTITY, STRING
from tessera.embedded.rules.values import Quantity, whole
from tessera.errors import InvalidQuantity
from tessera.model.quantities import parse_quantity


def _quantity(text: str) -> Quantity:
    try:
        return Quantity(parse_quantity(text))
    except InvalidQuantity as refusal:
        raise RuleFailed(f"quantity: {refusal}") from None


def _is_quantity(text: str) -> bool:
    try:
        return bool(_quantity(text))
    except RuleFailed:
        return False


def _as_integer(value: Quantity) -> int:
    if not _is_integer(value):
        raise RuleFailed("cannot convert value to integer")
    return whole(value.exact.numerator)


def _is_integer(value: Quantity) -> bool:
    return value.exact.denominator == 1


def _as_float(value: Quantity) -> float:
    return float(value.exact)


def _compare(one: Quantity, other: Quantity) -> int:
    return (one.exact > other.exact) - (one.exact < other.exact)


def _sign(value: Quantity) -> int:
    return _compare(value, Quantity(Fraction(0)))


def _plus(sign: int) -> Callable[[Quantity, Quantity | int], Quantity]:
    def summed(one: Quantity, other: Quantity | int) -> Quantity:
        return Quantity(one.exact + sign * (other.exact if isinstance(other, Quantity) else other))

    return summed


OVERLOADS = (
    Overload("quantity", (STRING,), QUANTITY, _quantity),
    Overload("isQuantity", (STRING,), BOOL, _is_quantity),
    Overload(".isInteger", (QUANTITY,), BOOL, _is_integer),
    Overload(".asInteger", (QUANTITY,), INT, _as_integer),
    Overload(".asApproximateFloat", (QUANTITY,), DOUBLE, _as_float),
    Overload(".sign", (QUANTITY,), INT, _sign),
    Overload(".add", (QUANTITY, QUANTITY), QUANTITY, _plus(1)),
    Overload(".add", (QUANTITY, INT), QUANTITY, _plus(1)),
    Overload(".sub", (QUANTITY, QUANTITY), QUANTITY, _plus(-1)),
    Overload(".sub", (QUANTITY, INT), QUANTITY, _plus(-1)),
    Overload(".isGreaterThan", (QUANTITY, QUANTITY), BOOL, operator.gt),
    Overload(".isLessThan", (QUANTITY, QUANTITY), BOOL, operator.lt),
    Overload(".compareTo", (QUANTITY, QUANTITY), INT, _compare),
)
