"""Fields, keys and places of values: there, perhaps there, or missing.

Whatever has no fields is taken for something whose fields are missing, as CEL does: null too.
"""

from typing import Any, cast

from tessera.embedded.rules.mistakes import RuleBroken, RuleFailed
from tessera.embedded.rules.parts import Frame, Run
from tessera.embedded.rules.syntax import Select
from tessera.embedded.rules.types import MAP, OPTIONAL, Type, may_be, part_of
from tessera.embedded.rules.values import KEYS, NOTHING, Perhaps


def field_of(operand: Type, node: Select) -> tuple[str, Type]:
    """The key under which a field lies, and what is known of it; an optional is looked into."""
    whole = part_of(operand) if operand.name == OPTIONAL.name else operand
    if whole.fields is not None:
        if node.field not in whole.fields:
            raise RuleBroken(f"undefined field '{node.field}'", node.at)
        return whole.fields[node.field]
    if not may_be(whole, MAP):
        raise RuleBroken(f"type '{whole}' does not support field selection", node.at)
    return node.field, part_of(whole)


def selected(operand: Run, key: str) -> Run:
    """`operand.key`; of an optional, an optional."""

    def run(frame: Frame) -> Any:
        value = operand(frame)
        try:
            return value[key]
        except (KeyError, TypeError):
            if type(value) is Perhaps:
                return perhaps(value, key)
            raise RuleFailed(f"no such key: {key}") from None

    return run


def indexed(operand: Run, index: Run) -> Run:
    """`operand[index]`; of an optional, an optional."""

    def run(frame: Frame) -> Any:
        value, key = operand(frame), index(frame)
        if type(value) is Perhaps:
            return perhaps(value, key)
        found = perhaps(value, key)
        if found.has_value:
            return found.held
        if type(value) is list and type(key) is int:
            raise RuleFailed(f"index out of bounds: {key}")
        if isinstance(value, dict):
            raise RuleFailed(f"no such key: {key}")
        raise RuleFailed("no such overload: _[_]")

    return run


def is_there(operand: Run, key: str) -> Run:
    """`has(operand.key)`."""

    def run(frame: Frame) -> bool:
        value = operand(frame)
        return perhaps(value, key).has_value if type(value) is Perhaps else isinstance(value, dict) and key in value

    return run


def perhaps_selected(operand: Run, key: str) -> Run:
    """`operand.?key`."""
    return lambda frame: perhaps(operand(frame), key)


def perhaps_indexed(operand: Run, index: Run) -> Run:
    """`operand[?index]`."""
    return lambda frame: perhaps(operand(frame), index(frame))


def perhaps(value: Any, key: Any) -> Perhaps:
    if type(value) is Perhaps:
        value = value.held  # null where it holds nothing, which has no fields either
    if value is None:
        return NOTHING
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        return Perhaps(entries[key]) if type(key) in KEYS and key in entries else NOTHING
    if type(value) is list:
        items = cast("list[Any]", value)
        return Perhaps(items[key]) if type(key) is int and 0 <= key < len(items) else NOTHING
    return NOTHING
