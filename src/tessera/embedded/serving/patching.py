"""The four kinds of patches: each makes of an object as it is what it shall be."""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from tessera.embedded.documents import Document
from tessera.embedded.ownership import Write, apply
from tessera.embedded.patches.json_patch import json_patch
from tessera.embedded.patches.merge_patch import merge_patch
from tessera.embedded.patches.strategic import strategic_merge
from tessera.embedded.refusals import ApiRefusal, Cause, bad_request, unsupported_media_type
from tessera.embedded.serving.bodies import agree, decode_any, decode_object
from tessera.embedded.serving.requests import Asked
from tessera.embedded.serving.vetting import vetted
from tessera.embedded.serving.writing import Change, Writer, Written

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


async def patch(writer: Writer, asked: Asked) -> Written:
    if media_of(asked) == APPLY_PATCH:
        return await _apply(writer, asked)
    return await writer.change(asked, read_patch(asked))


def media_of(asked: Asked) -> str:
    return asked.content_type.partition(";")[0].strip()


def read_patch(asked: Asked) -> Change:
    """What this patch makes of an object, vetted afterwards as if it had been sent whole."""
    merge = _merger(asked)

    def change(document: Document) -> Document:
        merged = merge(document)
        if not isinstance(merged, dict):
            raise bad_request(f"the patch makes something of the object that is none: {merged!r}")
        whole = cast("Document", merged)
        agree(whole, asked.served.kind, asked.target)
        return vetted(asked, whole)

    return change


def _merger(asked: Asked) -> Callable[[Document], Any]:
    body, schema, media = decode_any(asked.body, JSON_PATCH), asked.served.schema, media_of(asked)
    if media == JSON_PATCH:
        return partial(json_patch, operations=body)
    if media == MERGE_PATCH:
        return partial(merge_patch, patch=body)
    if media == STRATEGIC_PATCH and schema and not asked.served.is_custom:
        return partial(strategic_merge, patch=body, schema=schema)
    raise unsupported_media_type(_unsupported(asked, media))


def _unsupported(asked: Asked, media: str) -> str:
    known = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
    if not asked.served.is_custom:
        known.insert(2, STRATEGIC_PATCH)
    return (
        f"the body of the request was in an unknown format ({media}) - accepted media types include: {', '.join(known)}"
    )


async def _apply(writer: Writer, asked: Asked) -> Written:
    applied = _read_applied(asked)
    schema = asked.served.schema
    if schema is None:
        raise unsupported_media_type(f"{asked.served.kind.resource} has no schema by which it could be applied")

    def merged(live: Document | None, write: Write) -> Document:
        return apply(live, applied, write, schema, force=asked.options.force)

    return await writer.apply(asked, merged)


def _read_applied(asked: Asked) -> Document:
    if not asked.options.field_manager:
        raise _without_manager()
    applied = decode_object(asked.body, APPLY_PATCH)
    agree(applied, asked.served.kind, asked.target)
    return vetted(asked, applied)


def _without_manager() -> ApiRefusal:
    cause = Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
    message = f'PatchOptions.meta.k8s.io "" is invalid: {cause.field}: {cause.message}'
    details: Document = {"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [cause._asdict()]}
    return ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)
