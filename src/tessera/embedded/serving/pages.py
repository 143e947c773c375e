"""Lists in pages: where one ended, and that the next shows the same state.

A continue token says the version of the first page and the last key that was shown. Where that version is forgotten the
client is told so, with a token that goes on from the same key in the state as it is now.
"""

import base64
from bisect import bisect_right
from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from tessera.embedded.documents import Document
from tessera.embedded.refusals import ApiRefusal, Cause, bad_request, expired
from tessera.embedded.serving.options import Options
from tessera.embedded.serving.selectors import Selection
from tessera.embedded.store import Forgotten, Record, Store

_NOW = -1
_EXPIRED = "The provided continue parameter is too old to display a consistent list result"


class Token(msgspec.Struct, frozen=True):
    """`version` is that of the first page, or -1 for the state as it is now."""

    version: int
    namespace: str
    name: str

    def written(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).rstrip(b"=").decode()


class Page(NamedTuple):
    records: Sequence[Record]
    metadata: Document


class Continued(ApiRefusal):
    """410, with a token for whoever takes the rest as it is now."""

    def __init__(self, token: Token) -> None:
        gone = expired(_EXPIRED)
        super().__init__(gone.code, gone.reason, gone.message)
        self._token = token

    def status(self) -> Document:
        return super().status() | {"metadata": {"continue": self._token.written()}}


def read_token(text: str) -> Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Token)
    except (ValueError, msgspec.MsgspecError):
        raise bad_request("continue key is not valid: it was not made by this server") from None


def read_page(
    store: Store, resource: str, namespace: str, options: Options, selection: Selection | None = None
) -> Page:
    token = read_token(options.continue_) if options.continue_ else None
    version, records = _state(store, resource, namespace, options, token)
    if token:
        records = records[bisect_right(records, (token.namespace, token.name), key=_place) :]
    if selection:
        records = [record for record in records if selection.match_record(record)]
    metadata: Document = {"resourceVersion": str(version)}
    if not options.limit or len(records) <= options.limit:
        return Page(records, metadata)
    page = records[: options.limit]
    metadata["continue"] = Token(version, *_place(page[-1])).written()
    if selection is None:
        metadata["remainingItemCount"] = len(records) - len(page)
    return Page(page, metadata)


def _place(record: Record) -> tuple[str, str]:
    return record.key.namespace, record.key.name


def _state(
    store: Store, resource: str, namespace: str, options: Options, token: Token | None
) -> tuple[int, Sequence[Record]]:
    if token:
        return _at_token(store, resource, namespace, token)
    wanted = read_version(options.resource_version)
    if options.resource_version_match and not options.resource_version:
        raise _misplaced_match()
    if wanted > store.version:
        raise too_large(wanted, store.version)
    if options.resource_version_match == "Exact":
        return wanted, _past(store, resource, namespace, wanted)
    return store.version, store.list(resource, namespace)


def _at_token(store: Store, resource: str, namespace: str, token: Token) -> tuple[int, Sequence[Record]]:
    if token.version in (_NOW, store.version):
        return store.version, store.list(resource, namespace)
    try:
        return token.version, store.list_at(resource, namespace, token.version)
    except Forgotten:
        raise Continued(Token(_NOW, token.namespace, token.name)) from None


def _past(store: Store, resource: str, namespace: str, version: int) -> Sequence[Record]:
    try:
        return store.list_at(resource, namespace, version)
    except Forgotten:
        raise expired(f"The resourceVersion for the provided list is too old: {version}.") from None


def read_version(text: str) -> int:
    if text and not text.isdecimal():
        raise bad_request(f'invalid resource version: "{text}", expected a number that this server gave')
    return int(text or 0)


def too_large(wanted: int, current: int) -> ApiRefusal:
    message = f"Too large resource version: {wanted}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details: Document = {"causes": [cause], "retryAfterSeconds": 1}
    return ApiRefusal(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", message, details)


def _misplaced_match() -> ApiRefusal:
    why = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
    cause = Cause("FieldValueForbidden", why, "resourceVersionMatch")
    message = f'ListOptions.meta.k8s.io "" is invalid: {cause.field}: {why}'
    details: Document = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause._asdict()]}
    return ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)
