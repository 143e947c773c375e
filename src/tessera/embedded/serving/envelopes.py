"""Objects between storage and wire, by bytes: nothing that is stored is decoded to be shown.

An object is stored without kind and apiVersion, because the items of a list do not have them and a kind that is served
in several versions has more than one. Whoever is shown one object finds both in front. Items of a list of custom
resources have them too, as clients without types need.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

import msgspec

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.store import Record


def _plain(value: object) -> object:
    """A mapping that nobody may change is one all the same."""
    if isinstance(value, Mapping):
        return dict(cast("Frozen", value))
    raise NotImplementedError(f"{type(value)} has no form in JSON")


encode = msgspec.json.Encoder(enc_hook=_plain).encode
decode = msgspec.json.decode


@lru_cache(maxsize=512)
def opening(kind: str, api_version: str) -> bytes:
    """An object up to its own fields."""
    return b'{"kind":%b,"apiVersion":%b,' % (encode(kind), encode(api_version))


def shown(kind: Kind, record: Record) -> bytes:
    return opening(kind.kind, kind.api_version) + record.body[1:]


def opened(kind: Kind, record: Record) -> Document:
    """The object, decoded, as its readers know it: theirs to change."""
    return {"kind": kind.kind, "apiVersion": kind.api_version} | record.document()


def as_stored(document: Frozen) -> Document:
    return {field: value for field, value in document.items() if field not in ("kind", "apiVersion")}


def listed(kind: Kind, records: Sequence[Record], metadata: Frozen, *, items_have_kinds: bool) -> bytes:
    if not items_have_kinds:
        return enlisted(kind, b",".join([record.body for record in records]), metadata)
    front = opening(kind.kind, kind.api_version)
    return enlisted(kind, b",".join([front + record.body[1:] for record in records]), metadata)


def enlisted(kind: Kind, items: bytes, metadata: Frozen) -> bytes:
    """A list of what is encoded already."""
    front = opening(kind.list_kind, kind.api_version)
    return b'%b"metadata":%b,"items":[%b]}' % (front, encode(metadata), items)


def event(type: str, shown: bytes) -> bytes:
    """One line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (type.encode(), shown)


def bookmark(kind: Kind, version: int, *, ends_initial_events: bool) -> bytes:
    metadata: Document = {"resourceVersion": str(version)}
    if ends_initial_events:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", opening(kind.kind, kind.api_version) + b'"metadata":%b}' % encode(metadata))
