"""Kinds that a definition adds: one for each version that it serves."""

import re
from collections.abc import Iterator

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import metadata
from tessera.embedded.resources.parts import each, inside
from tessera.embedded.resources.strategy import Strategy
from tessera.embedded.rules import rule_violations
from tessera.embedded.schemas import Schema

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY = {None: 2, "beta": 1, "alpha": 0}


class CustomResources(Strategy):
    """What the schema says, and the rules in it."""

    counts_generation = True

    def __init__(self, schema: Schema, *, has_status: bool) -> None:
        self._schema = schema
        self.has_status = has_status

    def default(self, document: Document) -> Document:
        return self._schema.defaulted(document)

    def initial_status(self, document: Frozen, now: str) -> None:
        del document, now

    def prepare_status(self, new: Document, old: Frozen) -> Document:
        """Of the metadata nothing can be changed here but who manages what."""
        managed = new["metadata"].get("managedFields")
        super().prepare_status(new, old)
        new["metadata"] = dict(old["metadata"])
        if managed is not None:
            new["metadata"]["managedFields"] = managed
        return new

    def has_changed(self, new: Frozen, old: Frozen) -> bool:
        status = not self.has_status and new.get("status") != old.get("status")
        return status or super().has_changed(new, old)

    def check(self, document: Frozen) -> list[Cause]:
        return self._schema.violations(document) or rule_violations(self._schema, document, None)

    def validate_update(self, new: Frozen, old: Frozen) -> list[Cause]:
        changed = metadata.check_change(new["metadata"], old["metadata"])
        found = changed + metadata.check(new["metadata"], self.check_name) + self._schema.violations(new)
        return found or rule_violations(self._schema, new, old)

    def validate_status(self, new: Frozen, old: Frozen) -> list[Cause]:
        return self.validate_update(new, old)


def kinds_of(definition: Frozen) -> Iterator[tuple[Kind, Frozen]]:
    """Each served version as a kind, the best first, with what the definition says about it."""
    spec, called = definition["spec"], definition["spec"]["names"]
    served = [version for version in each(spec, "versions") if version.get("served")]
    for version in sorted(served, key=lambda version: _rank(version["name"]), reverse=True):
        kind = Kind(
            group=spec["group"],
            version=version["name"],
            kind=called["kind"],
            plural=called["plural"],
            singular=called.get("singular") or called["kind"].lower(),
            short_names=tuple(each(called, "shortNames")),
            categories=tuple(each(called, "categories")),
            is_namespaced=spec["scope"] == "Namespaced",
            verbs=VERBS,
            subresources=tuple(name for name in ("status", "scale") if name in inside(version, "subresources")),
        )
        yield kind, version


def _rank(version: str) -> tuple[int, int, int, str]:
    """v2 before v1, v1 before v1beta2, that before v1alpha1, and words last."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0, version)
    return (_STABILITY[match[2]], int(match[1]), int(match[3] or 0), "")
