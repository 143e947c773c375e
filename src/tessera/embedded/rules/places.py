"""Where in a schema rules stand, compiled once: a schema without rules has none and costs nothing.

Under a list an element is compared with the one that had its keys before, if the list has keys. Otherwise nobody knows
which one it was.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from tessera.embedded import causes
from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.rules.mistakes import RuleBroken
from tessera.embedded.rules.program import Program, compile_rule
from tessera.embedded.rules.schema_types import type_of_root, type_of_schema
from tessera.embedded.rules.types import BOOL, STRING, Type, optional_of

VALIDATIONS = "x-kubernetes-validations"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """`is_transition` says that it is about a change. `may_lack_old` that it is asked at creation too."""

    program: Program
    message: str
    message_program: Program | None
    reason: str
    field_path: str
    is_transition: bool
    may_lack_old: bool


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one value, and the places below it that have any."""

    rules: Sequence[Rule] = ()
    fields: Mapping[str, "Place"] = {}
    values: "Place | None" = None
    items: "Place | None" = None
    keys: tuple[str, ...] = ()


class Reading(msgspec.Struct, frozen=True):
    """`broken` has a cause for each rule that is none, with its path in the schema."""

    place: Place | None
    broken: Sequence[Cause]


def read_places(raw: Frozen, path: str) -> Reading:
    """`path` is where the schema stands in its definition."""
    broken: list[Cause] = []
    return Reading(_read(raw, path, type_of_root(raw), broken), tuple(broken))


def _read(raw: Frozen, path: str, own: Type, broken: list[Cause]) -> Place | None:
    rules = list(_rules(raw, path, own, broken))
    fields: dict[str, Place] = {}
    properties: Frozen = raw.get("properties") or {}
    for name, field in properties.items():
        below = _read(field, f"{path}.properties[{name}]", type_of_schema(field), broken)
        if below is not None:
            fields[name] = below
    values, items = (_below(raw, part, path, broken) for part in ("additionalProperties", "items"))
    if not (rules or fields or values or items):
        return None
    keys = tuple(raw.get("x-kubernetes-list-map-keys") or ()) if raw.get("x-kubernetes-list-type") == "map" else ()
    return Place(rules=rules, fields=fields, values=values, items=items, keys=keys)


def _below(raw: Frozen, part: str, path: str, broken: list[Cause]) -> Place | None:
    below: Any = raw.get(part)
    if not isinstance(below, Mapping):
        return None
    schema = cast("Frozen", below)
    return _read(schema, f"{path}.{part}", type_of_schema(schema), broken)


def _rules(raw: Frozen, path: str, own: Type, broken: list[Cause]) -> Iterator[Rule]:
    for number, said in enumerate(raw.get(VALIDATIONS) or ()):
        where = f"{path}.{VALIDATIONS}[{number}]"
        old = optional_of(own) if said.get("optionalOldSelf") else own
        variables = {"self": own, "oldSelf": old}
        program = _compiled(said, "rule", BOOL, variables, where, broken)
        told = _compiled(said, "messageExpression", STRING, variables, where, broken)
        if program is not None:
            yield _rule(said, program, told)


def _compiled(
    said: Frozen, field: str, result: Type, variables: Mapping[str, Type], where: str, broken: list[Cause]
) -> Program | None:
    text = said.get(field) or ""
    if not text and field != "rule":
        return None
    try:
        return compile_rule(text, variables, result=result)
    except RuleBroken as why:
        what = "compilation failed" if field == "rule" else f"{field} compilation failed"
        broken.append(causes.invalid(f"{where}.{field}", text, f"{what}: {why}"))
        return None


def _rule(said: Frozen, program: Program, told: Program | None) -> Rule:
    text = " ".join(program.text.split())
    return Rule(
        program=program,
        message=(said.get("message") or "").strip() or f"failed rule: {text}",
        message_program=told,
        reason=said.get("reason") or "FieldValueInvalid",
        field_path=(said.get("fieldPath") or "").lstrip("."),
        is_transition="oldSelf" in program.reads,
        may_lack_old=bool(said.get("optionalOldSelf")),
    )
