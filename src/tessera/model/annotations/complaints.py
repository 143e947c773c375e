"""Sentences about values that cannot be used, put the same way by every codec."""

from tessera.errors import InvalidAnnotation

_LONGEST = 40


def shorten(value: object) -> str:
    """A value as a sentence can quote it: on one line, and not longer than a glance."""
    text = _text_of(value)
    if not text.isprintable():
        text = text.encode("unicode_escape").decode("ascii")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def invalid(where: str, what: str, value: object, expected: str) -> InvalidAnnotation:
    return InvalidAnnotation(f'{where}: {what} is "{shorten(value)}", expected {expected}')


def missing(where: str, what: str, expected: str) -> InvalidAnnotation:
    return InvalidAnnotation(f"{where}: {what} is missing, expected {expected}")


def _text_of(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case dict():
            return "{...}"
        case list() | tuple():
            return "[...]"
        case _:
            return str(value)
