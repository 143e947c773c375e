"""What a caller asks a server for, checked before a call is made of it."""

import operator
from collections.abc import Mapping
from typing import Any, cast

from kpu.errors import InvalidRequest
from kpu.wire.messages import TensorRequest

COUNT_LIMIT = 2**32 - 1


def ask_for(count: Any, parameters: Any) -> TensorRequest:
    """Numbers and shapes may be given as they are: what the server's hooks get are strings."""
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidRequest(f"parameters is {parameters!r}, expected a dict, such as {{'shape': '20,20'}}")
    pairs = cast("Mapping[Any, Any]", parameters or {}).items()
    return TensorRequest(_checked_count(count), {_checked_key(key): _as_text(key, value) for key, value in pairs})


def _checked_count(count: Any) -> int:
    try:
        number = -1 if isinstance(count, bool) else operator.index(count)
    except TypeError:
        number = -1
    if not 0 <= number <= COUNT_LIMIT:
        raise InvalidRequest(f"count is {count!r}, expected a whole number of tensors")
    return number


def _checked_key(key: Any) -> str:
    if not isinstance(key, str) or not can_travel(key):
        raise InvalidRequest(f"a name in parameters is {key!r}, expected a string, such as 'shape'")
    return key


def _as_text(key: str, value: Any) -> str:
    """A shape of torch's calls itself otherwise than other tuples do."""
    text = str(tuple(cast("tuple[Any, ...]", value))) if isinstance(value, tuple) else str(value)
    if not can_travel(text):
        raise InvalidRequest(f"parameters[{key!r}] is {text!r}, expected text that has a form in UTF-8")
    return text


def can_travel(text: str) -> bool:
    """Whether it has a form in UTF-8; half a character, as it comes of a name of a file, has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
