"""Values that may not be there. `?.` and `[?]` make them; these take them apart."""

from collections.abc import Sequence
from typing import Any

from tessera.embedded.rules.overloads import Overload
from tessera.embedded.rules.types import BOOL, DYN, OPTIONAL, Type, either_of, optional_of, part_of
from tessera.embedded.rules.values import NOTHING, Perhaps


def _of_non_zero(value: Any) -> Perhaps:
    return Perhaps(value) if value else NOTHING


def _has_value(perhaps: Perhaps) -> bool:
    return perhaps.has_value


def _or(one: Perhaps, other: Perhaps) -> Perhaps:
    return one if one.has_value else other


def _of_held(types: Sequence[Type]) -> Type:
    return part_of(types[0])


def _of_held_or_other(types: Sequence[Type]) -> Type:
    return either_of([part_of(types[0]), types[1]])


def _first(types: Sequence[Type]) -> Type:
    return types[0]


def _optional(types: Sequence[Type]) -> Type:
    return optional_of(types[0])


OVERLOADS = (
    Overload("optional.of", (DYN,), _optional, Perhaps),
    Overload("optional.none", (), OPTIONAL, lambda: NOTHING),
    Overload("optional.ofNonZeroValue", (DYN,), _optional, _of_non_zero),
    Overload(".hasValue", (OPTIONAL,), BOOL, _has_value),
    Overload(".value", (OPTIONAL,), _of_held, Perhaps.value),
    Overload(".orValue", (OPTIONAL, DYN), _of_held_or_other, Perhaps.value_or),
    Overload(".or", (OPTIONAL, OPTIONAL), _first, _or),
)
