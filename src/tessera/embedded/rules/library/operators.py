"""Arithmetic and order. Numbers are ints of 64 bits, which overflow, or doubles, which do not."""

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from tessera.embedded.rules.mistakes import RuleFailed
from tessera.embedded.rules.overloads import Overload
from tessera.embedded.rules.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST,
    MAP,
    STRING,
    TIMESTAMP,
    either_of,
)
from tessera.embedded.rules.values import KEYS, is_equal, whole

ORDERED = (BOOL, INT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION)


def _in_range(compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda one, other: whole(compute(one, other))


def _negative(value: int) -> int:
    return whole(-value)


def _divided(one: int, other: int) -> int:
    if other == 0:
        raise RuleFailed("division by zero")
    quotient = abs(one) // abs(other)
    return whole(quotient if (one < 0) == (other < 0) else -quotient)


def _remainder(one: int, other: int) -> int:
    if other == 0:
        raise RuleFailed("modulus by zero")
    return abs(one) % abs(other) * (-1 if one < 0 else 1)


def _divided_double(one: float, other: float) -> float:
    if other:
        return one / other
    return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1.0, other)


def _is_in_list(value: Any, items: list[Any]) -> bool:
    if type(value) is str:  # Python's own search is right for strings, and fast
        return value in items
    return any(is_equal(value, item) for item in items)


def _is_in_map(key: Any, entries: dict[Any, Any]) -> bool:
    return type(key) in KEYS and key in entries


def _arithmetic() -> Iterator[Overload]:
    for sign, compute in (("+", operator.add), ("-", operator.sub), ("*", operator.mul)):
        yield Overload(f"_{sign}_", (INT, INT), INT, _in_range(compute))
        yield Overload(f"_{sign}_", (DOUBLE, DOUBLE), DOUBLE, compute)
    yield Overload("_/_", (INT, INT), INT, _divided)
    yield Overload("_/_", (DOUBLE, DOUBLE), DOUBLE, _divided_double)
    yield Overload("_%_", (INT, INT), INT, _remainder)
    yield Overload("-_", (INT,), INT, _negative)
    yield Overload("-_", (DOUBLE,), DOUBLE, operator.neg)
    yield Overload("!_", (BOOL,), BOOL, operator.not_)
    for joined in (STRING, BYTES):
        yield Overload("_+_", (joined, joined), joined, operator.add)
    yield Overload("_+_", (LIST, LIST), either_of, operator.add)


def _order() -> Iterator[Overload]:
    pairs = [(one, one) for one in ORDERED] + [(INT, DOUBLE), (DOUBLE, INT)]
    for sign, compare in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge)):
        for pair in pairs:
            yield Overload(f"_{sign}_", pair, BOOL, compare)


OVERLOADS = (
    *_arithmetic(),
    *_order(),
    Overload("_in_", (DYN, LIST), BOOL, _is_in_list),
    Overload("_in_", (DYN, MAP), BOOL, _is_in_map),
)
