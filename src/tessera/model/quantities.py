"""Kubernetes quantities as exact integers.

A quantity is a decimal number with an optional suffix: decimal SI (`m`, `k`, `M` …), binary SI (`Ki`, `Mi` …) or an
exponent (`1e3`). Fractions of the wanted unit round up, as Kubernetes does: nobody gets less than they asked for.
"""

import re
from fractions import Fraction
from functools import lru_cache

from tessera.errors import InvalidQuantity

LARGEST = 2**63 - 1

_QUANTITY = re.compile(r"(?P<sign>[+-]?)(?P<number>\d+\.?\d*|\.\d+)(?P<suffix>[a-zA-Z]*|[eE][+-]?\d{1,3})", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MAX_LENGTH = 64


remembered = lru_cache(maxsize=8192, typed=True)  # typed, because True equals 1


@remembered
def parse_quantity(value: str | int | float) -> Fraction:
    """The exact value of a quantity; a JSON number is taken as it stands."""
    text = str(value).strip() if not isinstance(value, bool) else "true" if value else "false"
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise InvalidQuantity(f'"{_shorten(text)}" is not a quantity, expected a number such as "2", "500m" or "1.5Gi"')
    number = Fraction(match["number"]) * (-1 if match["sign"] == "-" else 1)
    return number * _factor(match["suffix"], text)


@remembered
def count_of(value: str | int | float) -> int:
    """A whole number of things; refuses fractions, negatives and what no integer field can hold."""
    exact = parse_quantity(value)
    if exact.denominator != 1:
        raise InvalidQuantity(f'"{_shorten(str(value))}" is not a whole number, expected one such as "2"')
    return _bounded(exact, value)


@remembered
def milli_of(value: str | int | float) -> int:
    """Thousandths, for CPU: "1.5" is 1500."""
    return _bounded(parse_quantity(value) * 1000, value)


@remembered
def bytes_of(value: str | int | float) -> int:
    """Bytes, for host memory: "1Ki" is 1024."""
    return _bounded(parse_quantity(value), value)


def _factor(suffix: str, text: str) -> Fraction:
    if suffix in _BINARY:
        return Fraction(2 ** _BINARY[suffix])
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix]
    if suffix[:1] in "eE" and suffix[1:].lstrip("+-").isdigit():
        return Fraction(10) ** int(suffix[1:])
    raise InvalidQuantity(
        f'"{_shorten(text)}" has the unknown unit "{_shorten(suffix)}", '
        "expected one of k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or m"
    )


def _bounded(exact: Fraction, value: object) -> int:
    if exact < 0:
        raise InvalidQuantity(f'"{_shorten(str(value))}" is negative, expected zero or more')
    whole = -(-exact.numerator // exact.denominator)
    if whole > LARGEST:
        raise InvalidQuantity(f'"{_shorten(str(value))}" is too large, expected at most {LARGEST}')
    return whole


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
