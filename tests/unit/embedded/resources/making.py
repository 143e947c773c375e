"""Objects as a server would make them of what somebody sent, and what it would say to them."""

import copy
from typing import Any

from tessera.embedded.documents import Document
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import Registry, Served, metadata

NOW = "2026-01-02T03:04:05Z"
UID = "6f0b0a52-2a34-4c1f-9a52-8d8b1f1f6c11"
NAMESPACE = "lab"

REGISTRY = Registry()


def served(plural: str, group: str = "") -> Served:
    found = REGISTRY.find(group, "v1", plural)
    assert found is not None, f"{plural}.{group} is not served"
    return found


def begun(kind: Served, document: Document) -> Document:
    """With its identity and its defaults, as admission sees it."""
    whole = {"kind": kind.kind.kind, "apiVersion": kind.kind.api_version} | copy.deepcopy(document)
    namespace = NAMESPACE if kind.kind.is_namespaced else ""
    metadata.begin(whole, namespace=namespace, now=NOW, uid=UID, suffix="abcde")
    return kind.strategy.default(whole)


def created(kind: Served, document: Document) -> Document:
    """As it would be stored; it must be valid."""
    made = kind.strategy.prepare_create(begun(kind, document), NOW)
    assert kind.strategy.validate(made) == []
    return made


def complaints(kind: Served, document: Document) -> dict[str, str]:
    """What is wrong with a new object, by field."""
    return by_field(kind.strategy.validate(kind.strategy.prepare_create(begun(kind, document), NOW)))


def updated(kind: Served, old: Document, **changes: Any) -> Document:
    """The object with other top-level parts, as it would be stored."""
    return kind.strategy.prepare_update(_changed(kind, old, changes), old)


def with_status(kind: Served, old: Document, **changes: Any) -> Document:
    """The same through the status subresource."""
    return kind.strategy.prepare_status(_changed(kind, old, changes), old)


def refusals(kind: Served, old: Document, **changes: Any) -> dict[str, str]:
    """What is wrong with a change."""
    return by_field(kind.strategy.validate_update(updated(kind, old, **changes), old))


def by_field(found: list[Cause]) -> dict[str, str]:
    return {cause.field: cause.message for cause in found}


def _changed(kind: Served, old: Document, changes: Document) -> Document:
    new = copy.deepcopy(old) | copy.deepcopy(changes)
    return kind.strategy.default(metadata.keep_identity(new, old))


def pod(name: str = "worker", /, *, spec: Document | None = None, **container: Any) -> Document:
    main = {"name": "main", "image": "registry.invalid/none"} | container
    return {"metadata": {"name": name}, "spec": {"containers": [main]} | (spec or {})}


def workload(name: str = "web", **spec: Any) -> Document:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod()["spec"]}
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"selector": selector, "template": template} | spec}


def definition(**version: Any) -> Document:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}}
    served = {"name": "v1", "served": True, "storage": True, "schema": schema} | version
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wdg"]}
    spec = {"group": "lab.example", "scope": "Namespaced", "names": names, "versions": [served]}
    return {"metadata": {"name": "widgets.lab.example"}, "spec": spec}


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
