"""Server-side apply: a wish about some fields, refused where it would change a field of somebody else."""

from http import HTTPStatus

from tessera.embedded.documents import Document, copied
from tessera.embedded.ownership.entries import (
    Entries,
    Entry,
    Owner,
    Write,
    all_owned,
    owned,
    released,
    stored_entries,
    with_entries,
    without_entries,
)
from tessera.embedded.ownership.fields import Fields, intersection, paths, union
from tessera.embedded.ownership.merging import merge, prune
from tessera.embedded.ownership.shapes import Schema, Shape, shape_of
from tessera.embedded.ownership.surveying import compare, repeated, stated
from tessera.embedded.refusals import ApiRefusal, Cause, bad_request

BEFORE_FIRST_APPLY = "before-first-apply"
"""Who owns what was there before anybody's fields were told apart."""


class ApplyConflict(ApiRefusal):
    """Somebody else owns fields that the apply would change."""

    def __init__(self, message: str, causes: list[Cause]) -> None:
        super().__init__(HTTPStatus.CONFLICT, "Conflict", message, {"causes": [cause._asdict() for cause in causes]})
        self.causes = causes


def apply(live: Document | None, applied: Document, write: Write, schema: Schema, *, force: bool) -> Document:
    """The object as it becomes, a document of its own. With `force` the fields in conflict change hands."""
    shape = shape_of(schema)
    wanted = _reached(_checked(applied, write, shape), write)
    before = copied(live or {"metadata": {}})
    others = _entries_so_far(live, write, shape)
    owner = write.owner("Apply")
    last = others.pop(owner, None)
    fields = stated(wanted, shape)
    after = merge(before, wanted, shape)
    if last:
        kept = union(all_owned(others.values()), fields)
        after = prune(after, last.fields, kept, shape)
    changes = compare(without_entries(before), without_entries(after), shape)
    if not force:
        _refuse_conflicts(others, changes.written)
    entries = released(others, changes)
    mine = owned(fields, write)
    if mine:
        time = last.time if last and not any(changes) else write.now
        entries[owner] = Entry(mine, write.api_version, time)
    return with_entries(after, entries)


def _checked(applied: Document, write: Write, shape: Shape) -> Document:
    version, kind = applied.get("apiVersion", ""), applied.get("kind", "")
    if version != write.api_version or not kind:
        group, _, number = version.rpartition("/")
        raise bad_request(f"invalid object type: {group}/{number}, Kind={kind}")
    metadata: Document = applied.get("metadata") or {}
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    causes = [
        Cause("FieldValueDuplicate", f"duplicate entries for key {key}", where.removeprefix("."))
        for where, key in repeated(applied, shape)
    ]
    if causes:
        told = ", ".join(f".{cause.field}: {cause.message}" for cause in causes)
        details: Document = {"causes": [cause._asdict() for cause in causes]}
        message = f"failed to create typed patch object: {told}"
        raise ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)
    return applied


def _reached(applied: Document, write: Write) -> Document:
    reached = {name: value for name, value in applied.items() if name not in write.unreached}
    return copied(reached | {"metadata": reached.get("metadata") or {}})


def _entries_so_far(live: Document | None, write: Write, shape: Shape) -> Entries:
    entries = stored_entries(live)
    if entries or live is None:
        return entries
    first = write._replace(manager=BEFORE_FIRST_APPLY)
    fields = owned(compare({}, live, shape).written, first)
    return {first.owner("Update"): Entry(fields, write.api_version, write.now)} if fields else {}


def _refuse_conflicts(others: Entries, written: Fields) -> None:
    conflicts = [
        (owner, path)
        for owner in sorted(others, key=str)
        for path in paths(intersection(others[owner].fields, written))
    ]
    if conflicts:
        causes = [Cause("FieldManagerConflict", f"conflict with {owner}", path) for owner, path in conflicts]
        raise ApplyConflict(_told(conflicts), causes)


def _told(conflicts: list[tuple[Owner, str]]) -> str:
    if len(conflicts) == 1:
        owner, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {owner}: {path}"
    lines: list[str] = []
    for owner in dict.fromkeys(owner for owner, _ in conflicts):
        lines += [f"conflicts with {owner}:", *(f"- {path}" for other, path in conflicts if other == owner)]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
