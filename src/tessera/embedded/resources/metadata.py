"""What holds for the metadata of every object: names, labels, owners, finalizers, and what never changes.

`begin` and `keep_identity` give an object what the server alone decides; whoever asks cannot set it.
"""

from typing import Any

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import names
from tessera.embedded.resources.parts import each

ANNOTATIONS_LIMIT = 256 * 1024
SUFFIX_LENGTH = 5
_PREFIX_LENGTH = 63 - SUFFIX_LENGTH
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_SERVER_DECIDES = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_KEPT = ("namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName")


def begin(document: Document, *, namespace: str, now: str, uid: str, suffix: str) -> Document:
    """Give a new object its identity; `suffix` completes a generateName, and is not used where there is a name."""
    metadata: Document = document.setdefault("metadata", {})
    for field in (*_SERVER_DECIDES, "resourceVersion", "generation"):
        metadata.pop(field, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:_PREFIX_LENGTH] + suffix
    if namespace:
        metadata["namespace"] = namespace
    metadata["uid"] = uid
    metadata["creationTimestamp"] = now
    return document


def keep_identity(new: Document, old: Frozen) -> Document:
    """Put back what a write cannot change; a uid that contradicts stays, to be refused."""
    metadata: Document = new.setdefault("metadata", {})
    for field in _KEPT:
        if field == "uid" and metadata.get("uid"):
            continue
        if field in old["metadata"]:
            metadata[field] = old["metadata"][field]
        else:
            metadata.pop(field, None)
    return new


def check(metadata: Frozen, rule: names.Rule) -> list[Cause]:
    """What is wrong with the metadata of an object as it is."""
    found = _check_name(metadata, rule)
    found += check_labels(metadata.get("labels"), "metadata.labels")
    found += check_annotations(metadata.get("annotations"), "metadata.annotations")
    if metadata.get("ownerReferences"):
        found += _check_owners(metadata["ownerReferences"])
    for number, finalizer in enumerate(each(metadata, "finalizers")):
        found += _check_finalizer(finalizer, number)
    return found


def check_change(new: Frozen, old: Frozen) -> list[Cause]:
    """What of the metadata must not change, or not any more."""
    found = [
        causes.immutable(f"metadata.{field}", new.get(field, ""))
        for field in ("name", "namespace", "uid")
        if new.get(field) != old.get(field)
    ]
    added = [one for one in each(new, "finalizers") if one not in (each(old, "finalizers"))]
    if old.get("deletionTimestamp") and added:
        listed = ", ".join(causes.shown(finalizer) for finalizer in added)
        told = "no new finalizers can be added if the object is being deleted"
        detail = f"{told}, found new finalizers []string{{{listed}}}"
        found.append(causes.forbidden("metadata.finalizers", detail))
    return found


def check_labels(labels: Any, field: str) -> list[Cause]:
    if not labels:
        return []
    wanted: dict[str, str] = labels
    found: list[Cause] = []
    for key, value in wanted.items():
        found += [causes.invalid(field, key, sentence) for sentence in names.qualified(key)]
        found += [causes.invalid(field, value, sentence) for sentence in names.label_value(value)]
    return found


def check_annotations(annotations: Any, field: str) -> list[Cause]:
    if not annotations:
        return []
    wanted: dict[str, str] = annotations
    found = [causes.invalid(field, key, sentence) for key in wanted for sentence in names.qualified(key.lower())]
    if sum(len(key) + len(value) for key, value in wanted.items()) > ANNOTATIONS_LIMIT:
        found.append(causes.too_long(field, ANNOTATIONS_LIMIT))
    return found


def _check_name(metadata: Frozen, rule: names.Rule) -> list[Cause]:
    name = metadata.get("name")
    if not name:
        return [causes.required("metadata.name", "name or generateName is required")]
    return [causes.invalid("metadata.name", name, sentence) for sentence in rule(name)]


def _check_owners(owners: list[Frozen]) -> list[Cause]:
    field = "metadata.ownerReferences"
    found: list[Cause] = []
    for owner in owners:
        if not owner.get("apiVersion"):
            found.append(causes.invalid(f"{field}.apiVersion", "", "version must not be empty"))
        for part in ("kind", "name", "uid"):
            if not owner.get(part):
                found.append(causes.invalid(f"{field}.{part}", "", "must not be empty"))
    leading = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller")]
    if len(leading) > 1:
        detail = (
            "Only one reference can have Controller set to true. "
            f'Found "true" in references for {leading[0]} and {leading[1]}'
        )
        found.append(causes.invalid(field, owners, detail))
    return found


def _check_finalizer(finalizer: str, number: int) -> list[Cause]:
    found = [causes.invalid("metadata.finalizers", finalizer, sentence) for sentence in names.qualified(finalizer)]
    if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        found.append(causes.invalid(f"metadata.finalizers[{number}]", finalizer, detail))
    return found
