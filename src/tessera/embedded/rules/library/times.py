"""Points in time and spans between them. Finer than a microsecond is cut off."""

import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tessera.embedded.rules.mistakes import RuleFailed
from tessera.embedded.rules.overloads import Overload
from tessera.embedded.rules.types import DURATION, INT, STRING, TIMESTAMP

_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PIECE = r"[0-9]*\.?[0-9]+(?:h|ms|m|s|us|µs|ns)"
_DURATION = re.compile(rf"([+-]?)(0|(?:{_PIECE})+)")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")


def _duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text) if len(text) < 64 else None
    if match is None:
        raise RuleFailed(f'time: invalid duration "{text[:64]}"')
    pieces = re.findall(r"([0-9.]+)([a-zµ]+)", match[2])
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in pieces)
    return _bounded(lambda: timedelta(seconds=-seconds if match[1] == "-" else seconds))


def _timestamp(text: str) -> datetime:
    if _TIMESTAMP.fullmatch(text) is None:
        raise RuleFailed(f'parsing time "{text[:64]}": expected one such as "2026-01-02T03:04:05Z"')
    return _bounded(lambda: datetime.fromisoformat(text))


def _timestamp_of_int(at: int) -> datetime:
    return _bounded(lambda: datetime.fromtimestamp(at, UTC))


def _bounded(compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except (OverflowError, ValueError):
        raise RuleFailed("timestamp or duration out of range") from None


def _safely(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda one, other: _bounded(lambda: compute(one, other))


OVERLOADS = (
    Overload("duration", (STRING,), DURATION, _duration),
    Overload("timestamp", (STRING,), TIMESTAMP, _timestamp),
    Overload("timestamp", (INT,), TIMESTAMP, _timestamp_of_int),
    Overload("_+_", (DURATION, DURATION), DURATION, _safely(operator.add)),
    Overload("_+_", (TIMESTAMP, DURATION), TIMESTAMP, _safely(operator.add)),
    Overload("_+_", (DURATION, TIMESTAMP), TIMESTAMP, _safely(operator.add)),
    Overload("_-_", (DURATION, DURATION), DURATION, _safely(operator.sub)),
    Overload("_-_", (TIMESTAMP, DURATION), TIMESTAMP, _safely(operator.sub)),
    Overload("_-_", (TIMESTAMP, TIMESTAMP), DURATION, _safely(operator.sub)),
)
