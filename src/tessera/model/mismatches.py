"""One sentence for a document that does not have the shape we expect: where, which value, what was expected.

msgspec names the place and the kind; people also want to see the value that is in the way.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tessera.model.annotations.complaints import shorten

_PROBLEM = re.compile(r"(?P<problem>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)
_FIELD = re.compile(r"Object (?P<how>missing required|contains unknown) field `(?P<field>[^`]+)`")
_STEP = re.compile(r"\.(?P<field>\w+)|\[(?P<index>\d+)\]")
_KIND = re.compile(r"`(?P<kinds>[^`]+)`")
_KINDS = {"array": "a list", "object": "an object", "str": "a string", "int": "a whole number", "bool": "true or false"}


def explain_mismatch(error: msgspec.ValidationError, document: object, where: str = "") -> str:
    """`where` is the place of the document in a larger one, to be put before the place of the error in it."""
    found = _PROBLEM.fullmatch(str(error))
    problem, path = (found["problem"], found["path"] or "") if found else (str(error), "")
    place = f"{where}{path}".removeprefix(".")
    if field := _FIELD.match(problem):
        named = f"{place}.{field['field']}".removeprefix(".")
        if field["how"] == "contains unknown":
            return f"{named} is unknown, expected only fields that exist; look for a slip of the pen"
        return f"{named} is missing, expected it to be set"
    if place.endswith("[...]"):
        return f"{place.removesuffix('[...]')} has a wrong value, expected {_expectation(problem)} for every key"
    return f"{place or 'the document'} is {show(_value_at(document, path))}, expected {_expectation(problem)}"


def show(value: object) -> str:
    """A value as a sentence shows it: what is short as it stands, what is nested by its kind."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        return f'"{shorten(value)}"'
    if isinstance(value, bool | int | float):
        return shorten(value)
    return "an object" if isinstance(value, Mapping) else "a list"


def _expectation(problem: str) -> str:
    if not problem.startswith("Expected "):
        return "one of the words documented for it"
    wanted = problem.removeprefix("Expected ").partition(", got ")[0]
    return _KIND.sub(lambda match: _name_kinds(match["kinds"]), wanted)


def _name_kinds(kinds: str) -> str:
    return " or ".join(_KINDS.get(kind, kind) for kind in kinds.split(" | ") if kind != "null")


def _value_at(document: object, path: str) -> object:
    """The value that a msgspec path leads to; a step it leaves open (`[...]`) ends at what holds it."""
    value: Any = document
    for step in _STEP.finditer(path):
        value = value[int(step["index"])] if step["index"] else value[step["field"]]
    return value
