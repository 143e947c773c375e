"""Strings. Positions count characters, and only ASCII letters change case."""

import operator
import re
import string
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from tessera.embedded.rules.library.conversions import text_of_double
from tessera.embedded.rules.mistakes import RuleFailed
from tessera.embedded.rules.overloads import Overload
from tessera.embedded.rules.types import BOOL, INT, LIST, STRING, list_of

_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_TO_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_VERB = re.compile(r"%(?:\.(\d{1,2}))?(.?)", re.DOTALL)


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise RuleFailed(f"error parsing regexp: {error}: `{pattern[:80]}`") from None


def _matches(text: str, pattern: str) -> bool:
    return _expression(pattern).search(text) is not None


def _find(text: str, pattern: str) -> str:
    match = _expression(pattern).search(text)
    return match[0] if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in _expression(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _inside(at: int, *, last: int) -> int:
    if not 0 <= at <= last:
        raise RuleFailed(f"index out of range: {at}")
    return at


def _char_at(text: str, at: int) -> str:
    at = _inside(at, last=len(text))
    return text[at : at + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    return text.find(part, _inside(start, last=len(text)))


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    return text.rfind(part, 0, _inside(start, last=len(text)) + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else _inside(end, last=len(text))
    return text[_inside(start, last=end) : end]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    characters = list(text)
    if 0 < limit < len(characters):
        return [*characters[: limit - 1], "".join(characters[limit - 1 :])]
    return characters


def _lower(text: str) -> str:
    return text.translate(_TO_LOWER)


def _upper(text: str) -> str:
    return text.translate(_TO_UPPER)


def _join(items: list[Any], separator: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise RuleFailed("no such overload: join of a list that holds more than strings")
    return separator.join(items)


def _format(template: str, arguments: list[Any]) -> str:
    waiting = iter(arguments)

    def one(match: re.Match[str]) -> str:
        if match[2] == "%":
            return "%"
        if match[2] not in _WRITERS:
            raise RuleFailed(f'could not parse formatting clause: unrecognized formatting clause "{match[2]}"')
        try:
            return _WRITERS[match[2]](next(waiting), int(match[1] or 6))
        except StopIteration:
            raise RuleFailed("index out of range: there are fewer arguments than formatting clauses") from None

    return _VERB.sub(one, template)


def written(value: Any) -> str:
    """A value as `%s` writes it."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return text_of_double(value)
    if isinstance(value, list):
        return f"[{', '.join(map(written, cast('list[Any]', value)))}]"
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value).items()
        return f"{{{', '.join(sorted(f'{written(key)}: {written(item)}' for key, item in entries))}}}"
    return str(value)


def _decimal(value: Any, _: int) -> str:
    if type(value) is not int:
        raise RuleFailed(
            f"error during formatting: decimal clause can only be used on integers, was given {written(value)}"
        )
    return str(value)


def _fixed(value: Any, digits: int) -> str:
    if type(value) not in (int, float):
        raise RuleFailed(
            f"error during formatting: fixed-point clause can only be used on doubles, was given {written(value)}"
        )
    return f"{value:.{digits}f}"


_WRITERS: dict[str, Callable[[Any, int], str]] = {"s": lambda value, _: written(value), "d": _decimal, "f": _fixed}

_TEXTS = list_of(STRING)
OVERLOADS = (
    Overload(".contains", (STRING, STRING), BOOL, operator.contains),
    Overload(".startsWith", (STRING, STRING), BOOL, str.startswith),
    Overload(".endsWith", (STRING, STRING), BOOL, str.endswith),
    Overload(".matches", (STRING, STRING), BOOL, _matches),
    Overload("matches", (STRING, STRING), BOOL, _matches),
    Overload(".find", (STRING, STRING), STRING, _find),
    Overload(".findAll", (STRING, STRING), _TEXTS, _find_all),
    Overload(".findAll", (STRING, STRING, INT), _TEXTS, _find_all),
    Overload(".charAt", (STRING, INT), STRING, _char_at),
    Overload(".indexOf", (STRING, STRING), INT, _index_of),
    Overload(".indexOf", (STRING, STRING, INT), INT, _index_of),
    Overload(".lastIndexOf", (STRING, STRING), INT, _last_index_of),
    Overload(".lastIndexOf", (STRING, STRING, INT), INT, _last_index_of),
    Overload(".substring", (STRING, INT), STRING, _substring),
    Overload(".substring", (STRING, INT, INT), STRING, _substring),
    Overload(".replace", (STRING, STRING, STRING), STRING, str.replace),
    Overload(".replace", (STRING, STRING, STRING, INT), STRING, str.replace),
    Overload(".split", (STRING, STRING), _TEXTS, _split),
    Overload(".split", (STRING, STRING, INT), _TEXTS, _split),
    Overload(".trim", (STRING,), STRING, str.strip),
    Overload(".lowerAscii", (STRING,), STRING, _lower),
    Overload(".upperAscii", (STRING,), STRING, _upper),
    Overload(".format", (STRING, LIST), STRING, _format),
    Overload(".join", (_TEXTS,), STRING, _join),
    Overload(".join", (_TEXTS, STRING), STRING, _join),
)
