"""What a write other than an apply leaves in managedFields: its maker owns what it changed, and nobody else does."""

from tessera.embedded.documents import Document
from tessera.embedded.ownership.entries import (
    Entries,
    Entry,
    Write,
    capped,
    owned,
    released,
    sent_entries,
    stored_entries,
    with_entries,
    without_entries,
)
from tessera.embedded.ownership.fields import union, without
from tessera.embedded.ownership.shapes import Schema, shape_of
from tessera.embedded.ownership.surveying import Changes, compare


def note_update(before: Document | None, after: Document, write: Write, schema: Schema) -> Document:
    """`after` with the managedFields of this write; what else is in it is shared with what was given.

    Fields are compared as they will be stored, so a write that changes nothing leaves the very same entries. An
    object whose owners were dropped stays without them until somebody applies.
    """
    entries = _entries_so_far(before, after, write)
    if before is not None and not entries:
        return with_entries(after, {})
    known = without_entries(before) if before else {}
    changes = _reached(compare(known, without_entries(after), shape_of(schema)), write)
    entries = released(entries, changes)
    fields = owned(changes.written, write)
    if fields:
        owner = write.owner("Update")
        earlier = entries.get(owner)
        entries[owner] = Entry(union(earlier.fields, fields) if earlier else fields, write.api_version, write.now)
    return with_entries(after, capped(entries))


def _entries_so_far(before: Document | None, after: Document, write: Write) -> Entries:
    """Clients may rewrite the entries, or drop them all by sending none; who does not know of them changes none."""
    sent = after["metadata"].get("managedFields")
    if write.subresource or sent is None or (before and sent == before["metadata"].get("managedFields")):
        return stored_entries(before)
    if sent in ([], [{}]):
        return {}
    return sent_entries(sent) or stored_entries(before)


def _reached(changes: Changes, write: Write) -> Changes:
    return Changes(without(changes.written, write.unreached), without(changes.removed, write.unreached))
