"""Changes to a document as the smallest JSON patch that makes them.

A change says what shall stand where. What stands there already costs nothing, and parents that are missing come with
the first value below them. So whoever decides need not look at what is there, and deciding twice changes nothing.
"""

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from tessera.model.admission import Operation

Step = str | int
Path = tuple[Step, ...]
APPENDED = "-"
"""The step after the last element of a list."""


class Change(msgspec.Struct, frozen=True):
    path: Path
    value: Any


def make_patch(document: Any, changes: Iterable[Change]) -> tuple[Operation, ...]:
    """Later changes see what earlier ones made; the document itself stays as it is."""
    patch: list[Operation] = []
    for change in changes:
        depth, before = _deepest(document, change.path)
        value = _nest(change.path[depth:], change.value)
        if before == value and type(before) is type(value):
            continue
        path = change.path[:depth]
        patch.append(Operation("add" if before is None else "replace", _pointer(path), value))
        document = _with(document, path, value)
    return tuple(patch)


def _deepest(document: Any, path: Path) -> tuple[int, Any]:
    """How many steps of the path are needed to reach what is there or the first thing missing, and what is there."""
    here = document
    for depth, step in enumerate(path, start=1):
        here = _look(here, step)
        if here is None:
            return depth, None
    return len(path), here


def _look(holder: Any, step: Step) -> Any:
    if isinstance(holder, list):
        return None if step == APPENDED else cast("list[Any]", holder)[cast("int", step)]
    return holder.get(step)


def _nest(missing: Path, value: Any) -> Any:
    for step in reversed(missing):
        value = [value] if step == APPENDED else {step: value}
    return value


def _with(holder: Any, path: Path, value: Any) -> Any:
    """A copy of the holder in which the value stands at the path; what is not on the path is shared."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if step == APPENDED:
        return [*holder, value]
    changed = holder.copy()
    changed[step] = _with(_look(holder, step), rest, value)
    return changed


def _pointer(path: Path) -> str:
    """A path as RFC 6901 writes it."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
