"""Conditions: what an object says of itself, and since when.

A condition that says the same again is left as it is, so that a status that has not changed is not written.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tessera.kube.objects import Document


class Said(NamedTuple):
    type: str
    status: str
    reason: str
    message: str = ""


def find_condition(conditions: Sequence[Document] | None, kind: str) -> Document | None:
    return next((one for one in conditions or () if one["type"] == kind), None)


def is_true(conditions: Sequence[Document] | None, kind: str) -> bool:
    found = find_condition(conditions, kind)
    return found is not None and found["status"] == "True"


def with_condition(conditions: Sequence[Document] | None, said: Said, now: str, *stamped: str) -> list[Document]:
    """The conditions with this one. `stamped` names further times that are set when it changes: lastUpdateTime."""
    former = find_condition(conditions, said.type)
    told = {name: text for name, text in said._asdict().items() if text}
    entry: Document = {**told, "lastTransitionTime": now, **dict.fromkeys(stamped, now)}
    if former is not None:
        if former["status"] == said.status:
            entry["lastTransitionTime"] = former["lastTransitionTime"]
        if all(former.get(name) == text for name, text in told.items()):
            entry = former
    return [entry if one["type"] == said.type else one for one in conditions or ()] + [entry] * (former is None)


def without_condition(conditions: Sequence[Document] | None, kind: str) -> list[Document]:
    return [one for one in conditions or () if one["type"] != kind]
