"""The small part of JSONPath that definitions use: where a column or the number of replicas lies.

`.spec.workers`, `.metadata.labels['a.b/c']`, `.status.conditions[?(@.type=="Ready")].status`, `.spec.ids[0]`, `[*]`.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, cast

from tessera.embedded.documents import Document, Frozen

Step = Callable[[Any], Iterable[Any]]

_STEP = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\]\\])+)
    | \[(?P<index>-?\d+)\]
    | \[(?P<all>\*)\]
    | \[(?P<quote>['"])(?P<key>.+?)(?P=quote)\]
    | \[\?\(\s*@\.(?P<where>[\w.\-]+)\s*==\s*(?P<mark>['"])(?P<value>.*?)(?P=mark)\s*\)\]""",
    re.VERBOSE,
)


class WrongPath(ValueError):
    """The sentence says what was expected."""


def find(document: Frozen, path: str) -> list[Any]:
    """Everything that the path leads to; nothing where it leads nowhere."""
    found: list[Any] = [document]
    for step in steps_of(path):
        found = [value for place in found for value in step(place)]
    return found


def put(document: Document, path: str, value: Any) -> Document:
    """The document with the value at a path of plain fields, which are made where they are absent."""
    *parents, last = path.removeprefix(".").split(".")
    place = document
    for name in parents:
        if not isinstance(place.get(name), dict):
            place[name] = {}
        place = place[name]
    place[last] = value
    return document


@lru_cache(maxsize=1024)
def steps_of(path: str) -> tuple[Step, ...]:
    """The path taken apart. Raises WrongPath."""
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if not text.startswith((".", "[")):
        raise WrongPath("must be a simple json path starting with .")
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise WrongPath(f"cannot be read from {text[position:]!r} on")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["index"] is not None:
        return _element(int(match["index"]))
    if match["all"]:
        return _elements
    if match["where"]:
        return _filter(match["where"], match["value"])
    return _field((match["key"] or match["field"]).replace("\\.", "."))


def _field(name: str) -> Step:
    def step(place: Any) -> Iterable[Any]:
        return (cast("Document", place)[name],) if isinstance(place, dict) and name in place else ()

    return step


def _element(index: int) -> Step:
    def step(place: Any) -> Iterable[Any]:
        listed: list[Any] = cast("list[Any]", place) if isinstance(place, list) else []
        return (listed[index],) if -len(listed) <= index < len(listed) else ()

    return step


def _elements(place: Any) -> Iterable[Any]:
    if isinstance(place, dict):
        return tuple(cast("Document", place).values())
    return cast("list[Any]", place) if isinstance(place, list) else ()


def _filter(where: str, value: str) -> Step:
    def step(place: Any) -> Iterable[Any]:
        return [
            one
            for one in _elements(place)
            if isinstance(one, dict) and find(cast("Document", one), f".{where}") == [value]
        ]

    return step
