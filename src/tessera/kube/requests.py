"""One request as data, and what its answer means: an error of ours, or try again in a while.

Pure. What sends it is `transport`.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from tessera import errors
from tessera.kube.kinds import Kind
from tessera.kube.objects import ObjectKey

METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "replace": "PUT",
    "patch": "PATCH",
    "apply": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
IDEMPOTENT = frozenset({"GET", "PUT", "DELETE"})
MOST_TRIES = 8
JSON = "application/json"

Body = Mapping[str, Any] | Sequence[Mapping[str, Any]] | msgspec.Struct
Params = Mapping[str, str]
NO_PARAMS: Params = {}


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """`verb` is one of `METHODS`, `target` what it is done to, as in `patch` `pods default/web-0`."""

    verb: str
    path: str
    target: str
    params: Params = NO_PARAMS
    body: Body | None = None
    content_type: str = JSON
    deadline_s: float | None = None

    @property
    def method(self) -> str:
        return METHODS[self.verb]

    def __str__(self) -> str:
        return f"{self.verb} {self.target}"


def object_request(
    verb: str,
    kind: Kind[Any],
    key: ObjectKey,
    *,
    subresource: str = "",
    params: Params = NO_PARAMS,
    body: Body | None = None,
    content_type: str = JSON,
) -> Request:
    plural = f"{kind.plural}/{subresource}" if subresource else kind.plural
    return Request(
        verb=verb,
        path=kind.object_path(key.name, key.namespace, subresource),
        target=f"{plural} {key}",
        params=params,
        body=body,
        content_type=content_type,
    )


def collection_request(
    verb: str, kind: Kind[Any], namespace: str, *, params: Params = NO_PARAMS, body: Body | None = None
) -> Request:
    return Request(
        verb=verb,
        path=kind.collection_path(namespace),
        target=f"{kind.plural} in {namespace}" if namespace else kind.plural,
        params=params,
        body=body,
    )


class _StatusDocument(msgspec.Struct, frozen=True):
    message: str = ""
    reason: str = ""
    code: int = 0
    details: dict[str, Any] | None = None


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""


class _Details(msgspec.Struct, frozen=True):
    causes: tuple[_Cause, ...] | None = None


_BY_REASON: dict[str, type[errors.ApiError]] = {
    "BadRequest": errors.BadRequest,
    "Unauthorized": errors.Unauthorized,
    "Forbidden": errors.Forbidden,
    "NotFound": errors.NotFound,
    "AlreadyExists": errors.AlreadyExists,
    "Conflict": errors.Conflict,
    "Expired": errors.Expired,
    "Gone": errors.Expired,
    "Invalid": errors.Invalid,
    "TooManyRequests": errors.TooManyRequests,
    "ServiceUnavailable": errors.ServerUnavailable,
}
_BY_STATUS: dict[int, type[errors.ApiError]] = {
    400: errors.BadRequest,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Expired,
    422: errors.Invalid,
    429: errors.TooManyRequests,
    503: errors.ServerUnavailable,
}


def read_error(
    request: Request, body: bytes | msgspec.Raw, *, status: int = 0, retry_after: str | None = None
) -> errors.ApiError:
    """The error that an answer means. The body is a Status, unless a proxy or a dying server wrote it.

    Without a `status`, as in an event of a watch, the one that the body names counts.
    """
    said = _read_status(bytes(body))
    status = status or said.code
    kind = _BY_REASON.get(said.reason) or _BY_STATUS.get(status)
    if kind is None:
        kind = errors.ServerFailed if status >= HTTPStatus.INTERNAL_SERVER_ERROR else errors.ApiError
    return kind(
        said.message,
        verb=request.verb,
        target=request.target,
        status=status,
        reason=said.reason or kind.code,
        details=said.details,
        retry_after_s=_read_seconds(retry_after),
    )


def retry_wait_s(error: errors.ApiError, request: Request, *, tries: int, left_s: float) -> float | None:
    """How long to wait before the request is sent again; None when the error is to be told at once.

    Only an answer that names a time is tried again, and only while the request's own time lasts. Too many requests
    means that nothing was done, so that any request may be; an unavailable server may have done something, so that
    only what can be done twice is.
    """
    wait_s = error.retry_after_s
    if wait_s is None or tries >= MOST_TRIES or wait_s >= left_s:
        return None
    if isinstance(error, errors.TooManyRequests):
        return wait_s
    if isinstance(error, errors.ServerUnavailable) and request.method in IDEMPOTENT:
        return wait_s
    return None


def is_resource_version_too_large(error: errors.ApiError) -> bool:
    """The API server has never been where we have: its store was restored from a backup."""
    try:
        details = msgspec.convert(error.details, _Details)
    except msgspec.ValidationError:
        return False
    return any(cause.reason == "ResourceVersionTooLarge" for cause in details.causes or ())


def _read_status(body: bytes) -> _StatusDocument:
    try:
        return msgspec.json.decode(body, type=_StatusDocument)
    except msgspec.MsgspecError:
        return _StatusDocument(message=body[:200].decode(errors="replace").strip())


def _read_seconds(retry_after: str | None) -> float | None:
    return float(retry_after) if retry_after and retry_after.isdecimal() else None
