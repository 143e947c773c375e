"""Sets of fields, as trees in the very form in which managedFields shows them.

A step is a string: `f:name` a field, `k:{"name":"x"}` an element of a list by its keys, `v:"x"` one by its value,
`i:0` one by its place. What stands below a step is owned field by field; the step itself is in the set if nothing
stands below it, or `.` does. So a set need not be decoded to be worked with, and owning costs next to nothing on
every write. Steps are equal if they are spelled alike: keys are sorted and JSON is compact.

Nodes are shared between sets and never changed in place.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import msgspec

Fields: TypeAlias = dict[str, "Fields"]
SELF = "."

_canonical = msgspec.json.Encoder(order="sorted")


class UnreadableFields(Exception):
    """What a client sent as fieldsV1 is none."""


def is_owned(node: Fields) -> bool:
    """Whether the step that leads here is in the set, and not only something below it."""
    return not node or SELF in node


def union(one: Fields, other: Fields) -> Fields:
    joined = dict(one)
    for step, node in other.items():
        mine = joined.get(step)
        if mine is None:
            joined[step] = node
        elif mine is not node:
            joined[step] = _node(is_owned(mine) or is_owned(node), union(_below(mine), _below(node))) or {}
    return joined


def difference(one: Fields, other: Fields) -> Fields:
    """What is in one and not in the other. That a field is taken leaves what is below it where it was."""
    left = dict(one)
    for step in one.keys() & other.keys():
        mine, taken = one[step], other[step]
        node = _node(is_owned(mine) and not is_owned(taken), difference(_below(mine), _below(taken)))
        if node is None:
            del left[step]
        else:
            left[step] = node
    return left


def intersection(one: Fields, other: Fields) -> Fields:
    shared: Fields = {}
    for step in one.keys() & other.keys():
        mine, theirs = one[step], other[step]
        node = _node(is_owned(mine) and is_owned(theirs), intersection(_below(mine), _below(theirs)))
        if node is not None:
            shared[step] = node
    return shared


def without(fields: Fields, names: frozenset[str]) -> Fields:
    """Without these fields and all that is below them."""
    return {step: node for step, node in fields.items() if step[2:] not in names}


def paths(fields: Fields, above: str = "") -> Iterator[str]:
    """Every field in the set, as Kubernetes tells it to people: `.spec.containers[name="main"].image`."""
    for step in sorted(fields):
        if step == SELF:
            continue
        path = above + spoken(step)
        if is_owned(fields[step]):
            yield path
        yield from paths(fields[step], path)


def spoken(step: str) -> str:
    form, rest = step[:2], step[2:]
    if form == "f:":
        return f".{rest}"
    if form == "v:":
        return f"[={rest}]"
    if form == "k:":
        keys: dict[str, Any] = msgspec.json.decode(rest)
        return f"[{','.join(f'{name}={_text(value)}' for name, value in sorted(keys.items()))}]"
    return f"[{rest}]"


def key_step(keys: dict[str, Any]) -> str:
    return f"k:{_text(keys)}"


def value_step(value: Any) -> str:
    return f"v:{_text(value)}"


def read_fields(sent: Any) -> Fields:
    """A set as a client may spell it. Steps of a form that is not known are left out, as Kubernetes does."""
    fields = _read(sent)
    fields.pop(SELF, None)
    return fields


def _read(sent: Any) -> Fields:
    if not isinstance(sent, dict):
        raise UnreadableFields(f"fieldsV1 has {sent!r} where an object is expected")
    nodes = ((_spelled(step), node) for step, node in cast("dict[str, Any]", sent).items())
    return {step: _read(node) for step, node in nodes if step is not None}


def _spelled(step: str) -> str | None:
    if step == SELF:
        return step
    if step[1:2] != ":":
        raise UnreadableFields(f"fieldsV1 has {step!r} where a step such as f:name is expected")
    spell = _SPELLINGS.get(step[0])
    try:
        return step[:2] + spell(step[2:]) if spell else None
    except ValueError as error:
        raise UnreadableFields(f"fieldsV1 has {step!r}, which cannot be read: {error}") from error


def _keys_spelled(rest: str) -> str:
    return _text(msgspec.json.decode(rest, type=dict[str, Any]))


_SPELLINGS: dict[str, Callable[[str], str]] = {
    "f": lambda rest: rest,
    "k": _keys_spelled,
    "v": lambda rest: _text(msgspec.json.decode(rest)),
    "i": lambda rest: str(int(rest)),
}


def _text(value: Any) -> str:
    return _canonical.encode(value).decode()


def _below(node: Fields) -> Fields:
    return {step: below for step, below in node.items() if step != SELF} if SELF in node else node


def _node(owned: bool, below: Fields) -> Fields | None:
    if owned:
        return {SELF: {}, **below} if below else {}
    return below or None
