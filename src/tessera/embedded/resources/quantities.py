"""Quantities in the form in which Kubernetes keeps them: the largest unit that says exactly the same.

The family of the unit stays: 8000 becomes 8k and 8192Ki becomes 8Mi. What is below 1024 or no whole number of bytes is
written in decimal units, whatever family it came in. Finer than a billionth is rounded away from zero.
"""

import re
from functools import lru_cache
from typing import Any

from tessera.embedded.documents import Document
from tessera.embedded.refusals import bad_request
from tessera.errors import InvalidQuantity
from tessera.model.quantities import parse_quantity

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_IS_BINARY = re.compile(r".*[KMGTPE]i").fullmatch
_IS_EXPONENT = re.compile(r".*[eE][+-]?\d+").fullmatch
_FINEST = -9
_COARSEST = 18
_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@lru_cache(maxsize=8192, typed=True)  # typed, because True equals 1
def canonical(value: str | int | float | None) -> str:
    """The one text of a quantity that may be written in many; null is none of it."""
    if value is None:
        return "0"
    exact = parse_quantity(value)
    text = str(value).strip()
    if _IS_BINARY(text) and abs(exact) >= 1024 and exact.denominator == 1:
        return _binary(exact.numerator)
    scaled = exact * 10**-_FINEST
    billionths = -(-scaled.numerator // scaled.denominator) if scaled > 0 else scaled.numerator // scaled.denominator
    return _decimal(billionths, has_exponent=bool(_IS_EXPONENT(text)))


def canonical_of(value: Any, kind: str) -> str:
    """The canonical form of a value in an object of this kind; 400 where it is no quantity."""
    try:
        return canonical(value)
    except (InvalidQuantity, TypeError):  # a list is no key of the cache
        raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {_WRONG}') from None


def canonicalise(amounts: Document | None, kind: str) -> None:
    """Bring every value of a list of resources, where there is one, into its canonical form."""
    if amounts:
        amounts.update({name: canonical_of(value, kind) for name, value in amounts.items()})


def _binary(number: int) -> str:
    step = 0
    while number % 1024 == 0 and step < len(_BINARY) - 1:
        number, step = number // 1024, step + 1
    return f"{number}{_BINARY[step]}"


def _decimal(number: int, *, has_exponent: bool) -> str:
    if number == 0:
        return "0"
    exponent = _FINEST
    while number % 1000 == 0 and (has_exponent or exponent < _COARSEST):
        number, exponent = number // 1000, exponent + 3
    if has_exponent:
        return f"{number}e{exponent}" if exponent else f"{number}"
    return f"{number}{_DECIMAL[exponent]}"
