"""JSON patch (RFC 6902): operations done in order, wholly or not at all.

Two habits are Kubernetes' own: a failure is 422 whatever it was, and a test for null holds where nothing is.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import msgspec

from tessera.embedded.documents import Document, copied
from tessera.embedded.refusals import ApiRefusal, bad_request

_APPENDED = "-"
_REJECTED = "the server rejected our request due to an error in our request"


class _Unpatchable(Exception):
    """One operation cannot be done, and why."""


def json_patch(document: Document, operations: Any) -> Document:
    """A document of its own; the one given stays as it is."""
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    patched: Any = copied(document)
    for number, operation in enumerate(cast("list[Any]", operations)):
        try:
            patched = _done(patched, operation)
        except _Unpatchable as failure:
            message = f"{_REJECTED}: operation {number} of the JSON patch {failure}"
            raise ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message) from None
    if not isinstance(patched, dict):
        raise ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", f"{_REJECTED}: the patch leaves no object")
    return cast("Document", patched)


def _done(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict):
        raise _Unpatchable("is no object")
    asked = cast("Document", operation)
    do = _OPERATIONS.get(asked.get("op", ""))
    if do is None:
        raise _Unpatchable(f"has an unknown op: {asked.get('op')!r}")
    return do(document, asked)


def _add(document: Any, operation: Document) -> Any:
    return _placed(document, _path(operation, "path"), _value(operation))


def _replace(document: Any, operation: Document) -> Any:
    path = _path(operation, "path")
    _found(document, path)
    if not path:
        return _value(operation)
    holder, step = _found(document, path[:-1]), path[-1]
    holder[_index(holder, step) if isinstance(holder, list) else step] = _value(operation)
    return document


def _remove(document: Any, operation: Document) -> Any:
    return _removed(document, _path(operation, "path"))


def _move(document: Any, operation: Document) -> Any:
    source, target = _path(operation, "from"), _path(operation, "path")
    if len(target) > len(source) and target[: len(source)] == source:
        raise _Unpatchable(f"moves {_pointer(source)} into itself")
    moved = _found(document, source)
    return _placed(_removed(document, source), target, moved)


def _copy(document: Any, operation: Document) -> Any:
    return _placed(document, _path(operation, "path"), copied(_found(document, _path(operation, "from"))))


def _test(document: Any, operation: Document) -> Any:
    path, expected = _path(operation, "path"), operation.get("value")
    try:
        actual = _found(document, path)
    except _Unpatchable:
        if expected is None:
            return document
        raise
    if not _is_same(actual, expected):
        raise _Unpatchable(f"tests {_pointer(path)} for {_told(expected)}, and there is {_told(actual)}")
    return document


_OPERATIONS: dict[str, Callable[[Any, Document], Any]] = {
    "add": _add,
    "replace": _replace,
    "remove": _remove,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _path(operation: Document, key: str) -> list[str]:
    pointer = operation.get(key)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise _Unpatchable(f"has no pointer as its {key}: {pointer!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _value(operation: Document) -> Any:
    if "value" not in operation:
        raise _Unpatchable("has no value")
    return copied(operation["value"])


def _found(document: Any, path: list[str]) -> Any:
    here = document
    for step in path:
        if isinstance(here, list):
            here = cast("list[Any]", here)[_index(here, step)]
        elif isinstance(here, dict) and step in here:
            here = cast("Document", here)[step]
        else:
            raise _Unpatchable(f"finds nothing at {_pointer(path)}")
    return here


def _placed(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    holder, step = _found(document, path[:-1]), path[-1]
    if isinstance(holder, list):
        items = cast("list[Any]", holder)
        items.insert(len(items) if step == _APPENDED else _index(items, step, is_end_allowed=True), value)
    elif isinstance(holder, dict):
        holder[step] = value
    else:
        raise _Unpatchable(f"finds nothing that could hold {_pointer(path)}")
    return document


def _removed(document: Any, path: list[str]) -> Any:
    _found(document, path)
    if not path:
        return None
    holder, step = _found(document, path[:-1]), path[-1]
    del holder[_index(holder, step) if isinstance(holder, list) else step]
    return document


def _index(items: Any, step: str, *, is_end_allowed: bool = False) -> int:
    end = len(items) + is_end_allowed
    if not (step.isascii() and step.isdigit()) or (step != "0" and step.startswith("0")) or int(step) >= end:
        raise _Unpatchable(f"has {step!r} as an index into a list of {len(items)}")
    return int(step)


def _is_same(one: Any, other: Any) -> bool:
    """Python holds true and 1 to be equal; JSON does not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("Document", one), cast("Document", other)
        return left.keys() == right.keys() and all(_is_same(left[key], right[key]) for key in left)
    if isinstance(one, list) and isinstance(other, list):
        items, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(items) == len(others) and all(map(_is_same, items, others))
    return one == other


def _pointer(path: list[str]) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


def _told(value: Any) -> str:
    return msgspec.json.encode(value).decode()
