"""Empty lists and maps of a built-in kind are left out, as a server in Go leaves them out.

Some clients send them for whatever they do not mention. An empty object says something and stays: `emptyDir: {}`.
"""

from typing import Any, cast

from tessera.embedded.documents import Document
from tessera.embedded.schemas import Schema


def without_empty(schema: Schema, document: Document) -> Document:
    """The document itself where there is nothing to leave out; what is required stays, empty or not."""
    kept = document
    for name, part in document.items():
        child = schema.children[name]
        if child is None or type(part) not in (dict, list):
            continue
        if not part and name not in schema.required and _is_collection(child):
            kept = dict(document) if kept is document else kept
            del kept[name]
            continue
        inner = _inside(child, part)
        if inner is not part:
            kept = dict(document) if kept is document else kept
            kept[name] = inner
    return kept


def _is_collection(schema: Schema) -> bool:
    return schema.type == "array" or "additionalProperties" in schema.raw


def _inside(schema: Schema, part: Any) -> Any:
    if isinstance(part, dict):
        return without_empty(schema, cast("Document", part))
    items, elements = schema.items, cast("list[Any]", part)
    if items is None:
        return elements
    kept = [_inside(items, one) if isinstance(one, dict) else one for one in elements]
    return elements if all(one is other for one, other in zip(elements, kept, strict=True)) else kept
