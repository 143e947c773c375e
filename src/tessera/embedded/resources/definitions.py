"""CustomResourceDefinitions: what a definition must be like, and how it says that it is in force.

A definition is in force as soon as it is stored: its names are accepted and it is established in the same write. One
that is deleted is held by a finalizer until its objects are gone: some of them may be held by finalizers of their own.
"""

from collections.abc import Iterator

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import json_paths, names
from tessera.embedded.resources.json_paths import WrongPath
from tessera.embedded.resources.parts import each, inside, part_of, set_defaults
from tessera.embedded.resources.strategy import Strategy
from tessera.embedded.rules import broken_rules
from tessera.embedded.schemas import NotStructural, read_definition

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
SCOPES = ("Cluster", "Namespaced")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_PROTECTED = ("k8s.io", "kubernetes.io")
_APPROVAL = "api-approved.kubernetes.io"
_FOREVER = (("spec", "group"), ("spec", "scope"), ("names", "kind"), ("names", "plural"))


class Definitions(Strategy):
    has_status = True
    counts_generation = True

    def default(self, document: Document) -> Document:
        spec = part_of(document, "spec")
        called = part_of(spec, "names")
        if called.get("kind"):
            if not called.get("singular"):
                called["singular"] = called["kind"].lower()
            if not called.get("listKind"):
                called["listKind"] = f"{called['kind']}List"
        set_defaults(part_of(spec, "conversion"), strategy="None")
        if spec.get("preserveUnknownFields") is False:
            del spec["preserveUnknownFields"]
        return document

    def initial_status(self, document: Frozen, now: str) -> Document:
        accepted = _condition("NamesAccepted", "NoConflicts", "no conflicts found", now)
        established = _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now)
        return {
            "conditions": [accepted, established],
            "acceptedNames": dict(document["spec"]["names"]),
            "storedVersions": _stored(document["spec"]),
        }

    def prepare_update(self, new: Document, old: Frozen) -> Document:
        super().prepare_update(new, old)
        status = dict(inside(new, "status"))
        known = list(each(status, "storedVersions"))
        status["storedVersions"] = known + [name for name in _stored(new["spec"]) if name not in known]
        status["acceptedNames"] = dict(new["spec"]["names"])
        new["status"] = status
        return new

    def begin_deletion(self, document: Document, now: str) -> Document:
        metadata, status = part_of(document, "metadata"), dict(inside(document, "status"))
        others = [one for one in each(metadata, "finalizers") if one != FINALIZER]
        metadata["finalizers"] = [*others, FINALIZER]
        told = [one for one in each(status, "conditions") if one["type"] != "Terminating"]
        message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        status["conditions"] = [*told, _condition("Terminating", "InstanceDeletionPending", message, now)]
        document["status"] = status
        return document

    def check(self, document: Frozen) -> list[Cause]:
        spec: Frozen = document["spec"]
        return [
            *_check_naming(document),
            *_check_names(spec["names"]),
            *_check_versions(document),
            *_check_schemas(spec),
        ]

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        after, before = new["spec"], old["spec"]
        found: list[Cause] = []
        for part, name in _FOREVER:
            now, then = (spec if part == "spec" else spec["names"] for spec in (after, before))
            if now.get(name) != then.get(name):
                field = f"spec.{name}" if part == "spec" else f"spec.names.{name}"
                found.append(causes.immutable(field, now.get(name)))
        return found


def _condition(kind: str, reason: str, message: str, now: str) -> Document:
    told = {"type": kind, "status": "True", "lastTransitionTime": now}
    return told | {"reason": reason, "message": message}


def _stored(spec: Frozen) -> list[str]:
    return [version.get("name", "") for version in each(spec, "versions") if version.get("storage")]


def _check_naming(document: Frozen) -> Iterator[Cause]:
    spec, name = document["spec"], document["metadata"].get("name")
    group = spec.get("group") or ""
    if name != f"{spec['names'].get('plural', '')}.{group}":
        yield causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield causes.required("spec.group")
    elif sentences := names.subdomain(group):
        yield from (causes.invalid("spec.group", group, sentence) for sentence in sentences)
    elif "." not in group:
        yield causes.invalid("spec.group", group, "should be a domain with at least one dot")
    elif _is_protected(group) and not inside(document["metadata"], "annotations").get(_APPROVAL):
        detail = f'protected groups must have approval annotation "{_APPROVAL}"'
        reason = "https://github.com/kubernetes/enhancements/pull/1111"
        yield causes.required(f"metadata.annotations[{_APPROVAL}]", f"{detail}, see {reason}")
    if not spec.get("scope"):
        yield causes.required("spec.scope")
    else:
        yield from causes.unsupported_choice("spec.scope", spec["scope"], SCOPES)


def _is_protected(group: str) -> bool:
    return any(group == domain or group.endswith(f".{domain}") for domain in _PROTECTED)


def _check_names(called: Frozen) -> Iterator[Cause]:
    for part in ("plural", "singular", "kind", "listKind"):
        word = called.get(part) or ""
        field = f"spec.names.{part}"
        if not word:
            yield causes.required(field)
        else:
            yield from (
                causes.invalid(field, word, told)
                for told in names.dns_1035_label(word.lower() if "ind" in part else word)
            )
    for part in ("shortNames", "categories"):
        for number, word in enumerate(each(called, part)):
            field = f"spec.names.{part}[{number}]"
            yield from (causes.invalid(field, word, told) for told in names.dns_1035_label(word))


def _check_versions(document: Frozen) -> Iterator[Cause]:
    spec: Frozen = document["spec"]
    versions = each(spec, "versions")
    if spec.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield causes.invalid("spec.preserveUnknownFields", True, detail)
    known = [version.get("name") or "" for version in versions]
    for number, name in enumerate(known):
        field = f"spec.versions[{number}].name"
        yield from (causes.invalid(field, name, sentence) for sentence in names.dns_1035_label(name))
    if len(set(known)) != len(known):
        yield causes.invalid("spec.versions", known, "must contain unique version names")
    if len(_stored(spec)) != 1:
        shown = versions if not versions else known
        yield causes.invalid("spec.versions", shown, "must have exactly one version marked as storage version")
    for number, name in enumerate(each(inside(document, "status"), "storedVersions")):
        if name not in known:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield causes.invalid(f"status.storedVersions[{number}]", name, detail)


def _check_schemas(spec: Frozen) -> Iterator[Cause]:
    versions = each(spec, "versions")
    for number, version in enumerate(versions):
        own = f"spec.versions[{number}]"
        at = "spec" if len(versions) == 1 else own
        schema = inside(version, "schema").get("openAPIV3Schema")
        if schema is None:
            yield causes.required(f"{own}.schema.openAPIV3Schema")
        else:
            yield from _check_structure(schema, f"{at}.{'validation' if at == 'spec' else 'schema'}.openAPIV3Schema")
        for place, column in enumerate(each(version, "additionalPrinterColumns")):
            yield from _check_column(column, f"{at}.additionalPrinterColumns[{place}]")
        scale = inside(version, "subresources").get("scale")
        if scale is not None:
            yield from _check_scale(scale, f"{at}.subresources.scale")


def _check_structure(schema: Frozen, at: str) -> Iterator[Cause]:
    try:
        read_definition(schema, at)
    except NotStructural as error:
        yield from error.causes
    else:
        yield from broken_rules(schema, at)


def _check_column(column: Frozen, field: str) -> Iterator[Cause]:
    if not column.get("name"):
        yield causes.required(f"{field}.name")
    if column.get("type") not in _COLUMN_TYPES:
        yield causes.invalid(f"{field}.type", column.get("type"), f"must be one of {','.join(_COLUMN_TYPES)}")
    yield from _check_path(column.get("jsonPath") or "", f"{field}.JSONPath")


def _check_scale(scale: Frozen, field: str) -> Iterator[Cause]:
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status"), ("labelSelectorPath", "")):
        path = scale.get(name) or ""
        if name == "labelSelectorPath" and not path:
            continue
        if found := list(_check_path(path, f"{field}.{name}")):
            yield from found
        elif root and not path.startswith(f"{root}."):
            yield causes.invalid(f"{field}.{name}", path, f"should be a json path under {root}")


def _check_path(path: str, field: str) -> Iterator[Cause]:
    if not path:
        yield causes.required(field)
        return
    try:
        json_paths.steps_of(path)
    except WrongPath as error:
        yield causes.invalid(field, path, str(error))
