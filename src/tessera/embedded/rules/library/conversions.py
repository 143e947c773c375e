"""From one type to another, and the size of things."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
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
    TYPE,
    Type,
)
from tessera.embedded.rules.values import TypeName, type_of, whole

_TRUTHS = dict.fromkeys(("true", "True", "TRUE", "t", "1"), True) | dict.fromkeys(
    ("false", "False", "FALSE", "f", "0"), False
)


def text_of_double(value: float) -> str:
    """As short as it can be: 1.5, 1, NaN, +Inf."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value)).removesuffix(".0")


def _int_of_text(text: str) -> int:
    try:
        return whole(int(text))
    except ValueError:
        raise RuleFailed(f"type conversion error from 'string' to 'int': {text[:40]}") from None


def _int_of_double(value: float) -> int:
    if not math.isfinite(value):
        raise RuleFailed("integer overflow")
    return whole(int(value))


def _double_of_text(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise RuleFailed(f"type conversion error from 'string' to 'double': {text[:40]}") from None


def _bool_of_text(text: str) -> bool:
    if text not in _TRUTHS:
        raise RuleFailed(f"type conversion error from 'string' to 'bool': {text[:40]}")
    return _TRUTHS[text]


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise RuleFailed("invalid UTF-8 in bytes, cannot convert to string") from None


def _text_of_timestamp(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _text_of_bool(value: bool) -> str:
    return "true" if value else "false"


def _text_of_duration(value: timedelta) -> str:
    return f"{text_of_double(value.total_seconds())}s"


def _int_of_timestamp(value: datetime) -> int:
    return math.floor(value.timestamp())


def _type(value: Any) -> TypeName:
    return TypeName(type_of(value).name)


def _same(value: Any) -> Any:
    return value


def _sizes(kind: Type) -> Sequence[Overload]:
    return Overload("size", (kind,), INT, len), Overload(".size", (kind,), INT, len)


OVERLOADS = (
    *(overload for sized in (STRING, BYTES, LIST, MAP) for overload in _sizes(sized)),
    *(Overload(kind.name, (kind,), kind, _same) for kind in (BOOL, INT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION)),
    Overload("dyn", (DYN,), DYN, _same),
    Overload("type", (DYN,), TYPE, _type),
    Overload("string", (INT,), STRING, str),
    Overload("string", (DOUBLE,), STRING, text_of_double),
    Overload("string", (BOOL,), STRING, _text_of_bool),
    Overload("string", (BYTES,), STRING, _text_of_bytes),
    Overload("string", (TIMESTAMP,), STRING, _text_of_timestamp),
    Overload("string", (DURATION,), STRING, _text_of_duration),
    Overload("int", (STRING,), INT, _int_of_text),
    Overload("int", (DOUBLE,), INT, _int_of_double),
    Overload("int", (TIMESTAMP,), INT, _int_of_timestamp),
    Overload("double", (INT,), DOUBLE, float),
    Overload("double", (STRING,), DOUBLE, _double_of_text),
    Overload("bool", (STRING,), BOOL, _bool_of_text),
    Overload("bytes", (STRING,), BYTES, str.encode),
)
