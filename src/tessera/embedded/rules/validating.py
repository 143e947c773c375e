"""The rules of a schema, held against an object and what it was before."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Protocol, cast

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.rules.mistakes import RuleFailed
from tessera.embedded.rules.places import Place, Reading, Rule, read_places
from tessera.embedded.rules.program import told_by
from tessera.embedded.rules.values import NOTHING, Perhaps

ROOT = "<nil>"
"""What Kubernetes calls the path of the whole object."""
_IN_DEFINITION = "spec.validation.openAPIV3Schema"
_KINDS = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}


class HasRaw(Protocol):
    """A schema, as far as rules are concerned: its OpenAPI form."""

    @property
    def raw(self) -> Frozen: ...


def rule_violations(schema: HasRaw, new: Any, old: Any | None) -> list[Cause]:
    """A cause for each rule that does not hold or cannot be decided. `new` fits the schema, `old` is None at first."""
    reading = _reading(_Same(schema.raw))
    found = list(reading.broken)
    if reading.place is not None:
        found += _violations(reading.place, new, old, "")
    return found


def broken_rules(raw: Frozen, path: str = _IN_DEFINITION) -> list[Cause]:
    """A cause for each rule of a schema that is none, for its definition to be refused with."""
    return list(read_places(raw, path).broken)


class _Same:
    """A schema as a key: the same one, not one like it."""

    __slots__ = ("raw",)

    def __init__(self, raw: Frozen) -> None:
        self.raw = raw

    def __hash__(self) -> int:
        return id(self.raw)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.raw is other.raw


@lru_cache(maxsize=256)
def _reading(schema: _Same) -> Reading:
    return read_places(schema.raw, _IN_DEFINITION)


def _violations(place: Place, new: Any, old: Any | None, path: str) -> Iterator[Cause]:
    for rule in place.rules:
        if old is not None or not rule.is_transition or rule.may_lack_old:
            yield from _violation(rule, new, old, path)
    if isinstance(new, dict):
        yield from _violations_of_fields(place, cast("Document", new), old, path)
    elif isinstance(new, list) and place.items is not None:
        yield from _violations_of_items(place.items, place.keys, cast("list[Any]", new), old, path)


def _violations_of_fields(place: Place, new: Document, old: Any | None, path: str) -> Iterator[Cause]:
    before: Document = cast("Document", old) if isinstance(old, dict) else {}
    for name, below in place.fields.items():
        if new.get(name) is not None:
            yield from _violations(below, new[name], before.get(name), f"{path}.{name}".removeprefix("."))
    if place.values is not None:
        for key, value in new.items():
            yield from _violations(place.values, value, before.get(key), f"{path}[{key}]")


def _violations_of_items(
    below: Place, keys: tuple[str, ...], new: list[Any], old: Any | None, path: str
) -> Iterator[Cause]:
    before = _by_keys(cast("list[Any]", old), keys) if isinstance(old, list) and keys else {}
    for number, item in enumerate(new):
        yield from _violations(below, item, before.get(_identity(item, keys)), f"{path}[{number}]")


def _by_keys(items: Iterable[Any], keys: tuple[str, ...]) -> dict[tuple[Any, ...], Any]:
    return {_identity(item, keys): item for item in items}


def _identity(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(cast("Document", item).get(key) for key in keys) if isinstance(item, dict) else ()


def _violation(rule: Rule, new: Any, old: Any | None, path: str) -> Iterator[Cause]:
    variables = {"self": new, "oldSelf": old}
    if rule.may_lack_old:
        variables["oldSelf"] = NOTHING if old is None else Perhaps(old)
    try:
        if rule.program.evaluate(variables) is True:
            return
    except RuleFailed as why:
        yield Cause("FieldValueInvalid", f"Invalid value: {why} evaluating rule: {rule.message}", path or ROOT)
        return
    field = f"{path}.{rule.field_path}".strip(".") if rule.field_path else path
    kind = _KINDS.get(rule.reason, "Invalid value")
    yield Cause(rule.reason, f"{kind}: {told_by(rule.message_program, variables, rule.message)}", field or ROOT)
