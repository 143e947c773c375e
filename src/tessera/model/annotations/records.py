"""One object of an annotation, read field by field.

Old forms are text and give strings, new ones are JSON and give numbers. A record reads both, so that a card is built by
the same code whatever it was spelled in, and a broken field is reported by the same sentence.
"""

import re
from collections.abc import Iterable, Mapping
from typing import cast

import msgspec

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.complaints import invalid, missing, shorten
from tessera.model.annotations.limits import LARGEST

MIB = "a whole number of MiB such as 40960"
PERCENT = "a whole number of percent such as 100"
COUNT = "a whole number such as 10"
FLAG = '"true" or "false"'
TEXT = "a text"

_DIGITS = re.compile(r"[0-9]{1,20}")
_FLAGS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def read_json(text: str, where: str) -> object:
    try:
        return cast(object, msgspec.json.decode(text))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise InvalidAnnotation(f'{where} is "{shorten(text)}", expected JSON') from None


def write_json(value: object, owner: str) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        raise InvalidAnnotation(f"{owner} holds a character that UTF-8 cannot encode, expected Unicode text") from None


def whole_number(value: object, where: str, what: str, expected: str = COUNT, most: int = LARGEST) -> int:
    """A number from 0 to `most`, from a JSON number or from digits."""
    number = _integer(value)
    if number is None or number < 0:
        raise invalid(where, what, value, expected)
    if number > most:
        raise invalid(where, what, value, f"at most {most}")
    return number


def truth(value: object, where: str, what: str) -> bool:
    known = as_flag(value)
    if known is None:
        raise invalid(where, what, value, FLAG)
    return known


def as_flag(value: object) -> bool | None:
    """A boolean as Go and people spell it; None where it is none."""
    return value if isinstance(value, bool) else _FLAGS.get(str(value).strip().lower())


class Record:
    """The fields of one object. A field that is JSON null counts as missing; a default of None makes it required."""

    __slots__ = ("values", "where")

    def __init__(self, values: Mapping[str, object], where: str) -> None:
        self.values = values
        self.where = where

    def text(self, key: str, what: str = "", default: str | None = None) -> str:
        value = self._value(key, what, default, TEXT)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str):
            raise invalid(self.where, what or key, value, TEXT)
        return value

    def whole(self, key: str, what: str = "", expected: str = COUNT, default: int | None = None) -> int:
        return whole_number(self._value(key, what, default, expected), self.where, what or key, expected)

    def flag(self, key: str, what: str = "", default: bool | None = None) -> bool:
        return truth(self._value(key, what, default, FLAG), self.where, what or key)

    def record(self, key: str) -> "Record":
        """The object under a key; empty where there is none."""
        return record_of(self._value(key, "", {}, "an object"), f"{self.where} {shorten(key)}")

    def items(self, key: str) -> list[object]:
        """The list under a key; empty where there is none."""
        return list_of(self._value(key, "", [], "a list"), f"{self.where} {key}")

    def records(self, key: str, what: str = "") -> list["Record"]:
        return records_of(self.items(key), f"{self.where} {what or key}")

    def _value(self, key: str, what: str, default: object, expected: str) -> object:
        value = self.values.get(key)
        if value is None:
            value = default
        if value is None:
            raise missing(self.where, what or key, expected)
        return value


def record_of(value: object, where: str) -> Record:
    if not isinstance(value, dict):
        raise InvalidAnnotation(f'{where} is "{shorten(value)}", expected an object')
    return Record(cast(dict[str, object], value), where)


def list_of(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise InvalidAnnotation(f'{where} is "{shorten(value)}", expected a list')
    return cast(list[object], value)


def records_of(values: Iterable[object], where: str) -> list[Record]:
    return [record_of(value, f"{where} {position}") for position, value in enumerate(values)]


def _integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    text = value.strip() if isinstance(value, str) else ""
    return int(text) if _DIGITS.fullmatch(text) else None
