"""What a custom resource's schema demands of a value beyond its type, made ready once and sorted by type.

The sentences are those of Kubernetes' validation.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tessera.embedded import causes
from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.schemas.formats import CHECKED
from tessera.embedded.schemas.patterns import compiled


@dataclass(frozen=True, slots=True)
class Constraint:
    """`cause` is asked with the path and the value for which `holds` said no."""

    holds: Callable[[Any], bool]
    cause: Callable[[str, Any], Cause]


Constraints = Mapping[type, tuple[Constraint, ...]]


def constraints_of(raw: Frozen) -> Constraints:
    general = tuple(_choices(raw))
    numbers = (*_bounds(raw), *general)
    made = {
        int: numbers,
        float: numbers,
        str: (*_texts(raw), *general),
        list: (*_sizes(raw, "Items"), *general),
        dict: (*_sizes(raw, "Properties"), *general),
        bool: general,
    }
    return {kind: constraints for kind, constraints in made.items() if constraints}


def _choices(raw: Frozen) -> Iterator[Constraint]:
    if "enum" in raw:
        choices: list[Any] = raw["enum"]
        shown = [choice if isinstance(choice, str) else causes.shown(choice) for choice in choices]
        yield Constraint(
            lambda value: value in choices,
            lambda path, value: causes.not_supported(path, value, shown),
        )


def _bounds(raw: Frozen) -> Iterator[Constraint]:
    if "minimum" in raw:
        least: float = raw["minimum"]
        if raw.get("exclusiveMinimum"):
            yield _invalid(lambda value: value > least, f"should be greater than {_number(least)}")
        else:
            yield _invalid(lambda value: value >= least, f"should be greater than or equal to {_number(least)}")
    if "maximum" in raw:
        most: float = raw["maximum"]
        if raw.get("exclusiveMaximum"):
            yield _invalid(lambda value: value < most, f"should be less than {_number(most)}")
        else:
            yield _invalid(lambda value: value <= most, f"should be less than or equal to {_number(most)}")
    if "multipleOf" in raw:
        factor: float = raw["multipleOf"]
        yield _invalid(lambda value: value % factor == 0, f"should be a multiple of {_number(factor)}")
    if raw.get("format") in _WIDTHS:
        limit = _WIDTHS[raw["format"]]
        yield _invalid(lambda value: -limit <= value < limit, f"must be of type {raw['format']}")


_WIDTHS = {"int32": 2**31, "int64": 2**63}


def _texts(raw: Frozen) -> Iterator[Constraint]:
    if "maxLength" in raw:
        most: int = raw["maxLength"]
        yield Constraint(lambda text: len(text) <= most, lambda path, _: causes.too_long(path, most))
    if "minLength" in raw:
        least: int = raw["minLength"]
        yield _invalid(lambda text: len(text) >= least, f"should be at least {least} chars long")
    if "pattern" in raw:
        pattern = compiled(raw["pattern"])
        yield _invalid(lambda text: pattern.search(text) is not None, f"should match '{raw['pattern']}'")
    if raw.get("format") in CHECKED:
        name: str = raw["format"]
        yield Constraint(
            CHECKED[name],
            lambda path, text: causes.type_invalid(path, text, f'{path} in body must be of type {name}: "{text}"'),
        )


def _sizes(raw: Frozen, what: str) -> Iterator[Constraint]:
    if f"max{what}" in raw:
        most: int = raw[f"max{what}"]
        yield Constraint(lambda parts: len(parts) <= most, lambda path, parts: causes.too_many(path, len(parts), most))
    if f"min{what}" in raw:
        least: int = raw[f"min{what}"]
        detail = f"should have at least {least} {what.lower()}"
        yield Constraint(
            lambda parts: len(parts) >= least,
            lambda path, parts: causes.invalid(path, len(parts), f"{path} in body {detail}"),
        )


def _invalid(holds: Callable[[Any], bool], detail: str) -> Constraint:
    return Constraint(holds, lambda path, value: causes.invalid(path, value, f"{path} in body {detail}"))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)
