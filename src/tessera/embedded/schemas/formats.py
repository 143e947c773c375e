"""What a string must look like to be what its format says."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from tessera.errors import InvalidQuantity
from tessera.model.quantities import parse_quantity

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)", re.ASCII)
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@dataclass(frozen=True, slots=True)
class Readable:
    """Whether a value is of a format, and what a server says that cannot read it."""

    is_so: Callable[[Any], bool]
    complaint: Callable[[Any], str]


def _is_time(text: Any) -> bool:
    """Digits in their places are not enough: there is no February 30."""
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(f"{text[:10]}T{text[11:19]}")
    except ValueError:
        return False
    return True


def _is_micro_time(text: Any) -> bool:
    return bool(_MICRO_TIME.fullmatch(text)) and _is_time(text)


def _is_base64(text: Any) -> bool:
    try:
        base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_quantity(value: Any) -> bool:
    try:
        parse_quantity(value)
    except InvalidQuantity:
        return False
    return True


def _by_making(make: Callable[[str], object]) -> Callable[[str], bool]:
    def is_made(text: str) -> bool:
        try:
            make(text)
        except ValueError:
            return False
        return True

    return is_made


def _no_time(layout: str) -> Callable[[Any], str]:
    return lambda text: f'parsing time "{text}" as "{layout}": cannot parse'


READABLE: Mapping[str, Readable] = {
    "date-time": Readable(_is_time, _no_time("2006-01-02T15:04:05Z07:00")),
    "micro-time": Readable(_is_micro_time, _no_time("2006-01-02T15:04:05.000000Z07:00")),
    "byte": Readable(_is_base64, lambda _: "illegal base64 data"),
    "quantity": Readable(_is_quantity, lambda _: _QUANTITY),
}
"""Formats of built-in kinds: what is not of them cannot be read at all."""

CHECKED: Mapping[str, Callable[[str], bool]] = {
    "date-time": _is_time,
    "date": _by_making(date.fromisoformat),
    "byte": _is_base64,
    "ipv4": _by_making(ipaddress.IPv4Address),
    "ipv6": _by_making(ipaddress.IPv6Address),
    "cidr": _by_making(lambda text: ipaddress.ip_network(text, strict=False)),
    "uuid": lambda text: bool(_UUID.fullmatch(text)),
}
"""Formats of custom resources: what is not of them is invalid. Others mean nothing, as in Kubernetes."""
