"""The entries of metadata.managedFields: who owns, by which operation, since when.

An applier is one owner whatever version of the API it uses; who writes otherwise is one for each version. Both are
apart for each subresource.
"""

from collections.abc import Iterable
from itertools import starmap
from typing import Any, Literal, NamedTuple, cast

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.ownership.fields import Fields, UnreadableFields, difference, read_fields, union, without
from tessera.embedded.ownership.surveying import Changes

Operation = Literal["Apply", "Update"]

MOST_UPDATERS = 10
"""Whoever writes under ever new names must not make an object grow without end."""
OLD_UPDATERS = "ancient-changes"

NEVER_OWNED: Fields = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        "f:name": {},
        "f:namespace": {},
        "f:creationTimestamp": {},
        "f:selfLink": {},
        "f:uid": {},
        "f:generation": {},
        "f:managedFields": {},
        "f:resourceVersion": {},
    },
}
"""What says which object this is, or is the server's own."""

_STATUS: frozenset[str] = frozenset({"status"})
_SPEC: frozenset[str] = frozenset({"spec"})


class Write(NamedTuple):
    """A write as it is remembered. `status_apart` says that the kind has a subresource for its status."""

    manager: str
    api_version: str
    now: str
    subresource: str = ""
    status_apart: bool = True

    @property
    def unreached(self) -> frozenset[str]:
        """Fields of the object that this write cannot change, whatever it says."""
        if not self.status_apart:
            return frozenset()
        return {"": _STATUS, "status": _SPEC}.get(self.subresource, frozenset())

    def owner(self, operation: Operation) -> "Owner":
        return Owner(operation, self.manager, "" if operation == "Apply" else self.api_version, self.subresource)


class Owner(NamedTuple):
    operation: Operation
    manager: str
    api_version: str
    subresource: str

    def __str__(self) -> str:
        """As a conflict names it."""
        said = f'"{self.manager}"'
        if self.subresource:
            said += f' with subresource "{self.subresource}"'
        return said + (f" using {self.api_version}" if self.operation == "Update" else "")


class Entry(NamedTuple):
    fields: Fields
    api_version: str
    time: str


Entries = dict[Owner, Entry]


def stored_entries(document: Frozen | None) -> Entries:
    """The entries of an object that was written here, so they are spelled as they must be."""
    listed = document["metadata"].get("managedFields", ()) if document else ()
    return {_owner(entry): Entry(entry["fieldsV1"], entry["apiVersion"], entry.get("time", "")) for entry in listed}


def sent_entries(listed: Any) -> Entries | None:
    """The entries that a client sent; None if they cannot be read."""
    try:
        return {_owner(entry): _checked(entry) for entry in listed}
    except (UnreadableFields, AttributeError, KeyError, TypeError):
        return None


def without_entries(document: Document) -> Document:
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return document | {"metadata": metadata}


def with_entries(document: Document, entries: Entries) -> Document:
    noted = without_entries(document)
    if entries:
        noted["metadata"]["managedFields"] = sorted(starmap(_written, entries.items()), key=_order)
    return noted


def owned(fields: Fields, write: Write) -> Fields:
    """Without what nobody owns, or this write does not reach."""
    return difference(without(fields, write.unreached), NEVER_OWNED)


def released(entries: Entries, changes: Changes) -> Entries:
    """After somebody else has changed these fields. Whoever owns nothing any more is no owner."""
    left: Entries = {}
    for owner, entry in entries.items():
        fields = difference(difference(entry.fields, changes.written), changes.removed)
        if fields:
            left[owner] = entry._replace(fields=fields)
    return left


def capped(entries: Entries) -> Entries:
    """Of more updaters than `MOST_UPDATERS` the oldest become one, or one for each version that they used."""
    updaters = sorted((entry.time, owner) for owner, entry in entries.items() if owner.operation == "Update")
    surplus = len(updaters) - MOST_UPDATERS
    if surplus <= 0:
        return entries
    left = dict(entries)
    for _, owner in updaters[: surplus + 1]:
        entry = left.pop(owner)
        bucket = Owner("Update", OLD_UPDATERS, owner.api_version, "")
        older = left.get(bucket)
        left[bucket] = entry._replace(fields=union(older.fields, entry.fields)) if older else entry
    return left


def all_owned(entries: Iterable[Entry]) -> Fields:
    fields: Fields = {}
    for entry in entries:
        fields = union(fields, entry.fields)
    return fields


def _owner(entry: Frozen) -> Owner:
    operation: Operation = entry["operation"]
    api_version = "" if operation == "Apply" else entry["apiVersion"]
    return Owner(operation, entry.get("manager", ""), api_version, entry.get("subresource", ""))


def _checked(entry: Frozen) -> Entry:
    if entry["operation"] not in ("Apply", "Update") or entry["fieldsType"] != "FieldsV1" or not entry["apiVersion"]:
        raise UnreadableFields(f"managedFields has an entry that is not of FieldsV1: {entry!r}")
    return Entry(read_fields(entry.get("fieldsV1", cast("Fields", {}))), entry["apiVersion"], entry.get("time") or "")


def _written(owner: Owner, entry: Entry) -> Document:
    written: Document = {"manager": owner.manager, "operation": owner.operation, "apiVersion": entry.api_version}
    if entry.time:
        written["time"] = entry.time
    written |= {"fieldsType": "FieldsV1", "fieldsV1": entry.fields}
    return written | ({"subresource": owner.subresource} if owner.subresource else {})


def _order(entry: Document) -> tuple[str, str, str, str, str]:
    """Appliers first, then by age."""
    names = (entry["manager"], entry["apiVersion"], entry.get("subresource", ""))
    return (entry["operation"], entry.get("time", ""), *names)
