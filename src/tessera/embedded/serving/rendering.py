"""Stored objects in the form that was asked for: whole, their metadata alone, or rows of a table."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from tessera.embedded.documents import Document
from tessera.embedded.resources import Served
from tessera.embedded.serving import envelopes
from tessera.embedded.serving.envelopes import encode, opened
from tessera.embedded.serving.forms import Form
from tessera.embedded.serving.options import Options
from tessera.embedded.serving.pages import Page
from tessera.embedded.store import Record

META = "meta.k8s.io/v1"


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_read_metadata = msgspec.json.Decoder(_Metadata).decode


def render(served: Served, form: Form, options: Options, record: Record) -> bytes:
    """One object."""
    if form is Form.METADATA:
        return _metadata_alone(record)
    if form is Form.TABLE:
        return encode(_table(served, [record], {"resourceVersion": str(record.version)}, options))
    if served.from_stored:
        return encode(served.from_stored(opened(served.kind, record)))
    return envelopes.shown(served.kind, record)


def render_page(served: Served, form: Form, options: Options, page: Page) -> bytes:
    if form is Form.METADATA:
        front = envelopes.opening("PartialObjectMetadataList", META)
        items = b",".join([_metadata_alone(record) for record in page.records])
        return front + b'"metadata":%b,"items":[%b]}' % (encode(page.metadata), items)
    if form is Form.TABLE:
        return encode(_table(served, page.records, page.metadata, options))
    if served.from_stored:
        items = b",".join([render(served, form, options, record) for record in page.records])
        return envelopes.enlisted(served.kind, items, page.metadata)
    return envelopes.listed(served.kind, page.records, page.metadata, items_have_kinds=served.is_custom)


def _metadata_alone(record: Record) -> bytes:
    front = envelopes.opening("PartialObjectMetadata", META)
    return front + b'"metadata":%b}' % bytes(_read_metadata(record.body).metadata)


def _table(served: Served, records: Sequence[Record], metadata: Document, options: Options) -> Document:
    now = datetime.now(UTC)
    return {
        "kind": "Table",
        "apiVersion": META,
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in served.columns],
        "rows": [_row(served, record, now, options) for record in records],
    }


def _row(served: Served, record: Record, now: datetime, options: Options) -> Document:
    document = opened(served.kind, record)
    cells = [column.cell(document, now) for column in served.columns]
    if options.include_object == "None":
        return {"cells": cells}
    if options.include_object == "Object":
        return {"cells": cells, "object": document}
    return {"cells": cells, "object": msgspec.Raw(_metadata_alone(record))}
