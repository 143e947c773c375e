"""Errors as the official client raises them, with a sentence that says what to do."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from kubernetes.client.exceptions import ApiException

from .documents import Document, mapping_at, text_at


class NoSuchWorker(ApiException, ValueError):
    """A worker index that the job does not have: there is no such pod, and no such index."""


def api_error(status: int, message: str, *, reason: str = "", kind: Any = ApiException) -> ApiException:
    """Made here, with a body like the API server's: a Status."""
    words = reason or _REASONS.get(status, "InternalError")
    body: Document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": words,
        "code": status,
    }
    error = kind(status=status, reason=message)
    error.body = json.dumps(body)
    return error


def status_of(error: ApiException) -> int:
    """The answer's, or 0 where there was none."""
    untyped: Any = error
    return int(untyped.status or 0)


def message_of(error: ApiException) -> str:
    """The server's own sentence."""
    body = body_of(error)
    untyped: Any = error
    return str(body.get("message") or untyped.body or untyped.reason or error).strip()


def body_of(error: ApiException) -> Mapping[str, Any]:
    """The Status that the server sent, or nothing."""
    untyped: Any = error
    try:
        body = json.loads(untyped.body or "")
    except (TypeError, ValueError):
        return {}
    return mapping_at({"body": body}, "body")


def raise_from(error: ApiException, message: str) -> NoReturn:
    """The same error with a sentence of ours before what the server said, which stays in its body."""
    untyped: Any = error
    untyped.reason = message
    raise error


def is_quota_refusal(error: ApiException) -> bool:
    return status_of(error) == 403 and "exceeded quota" in message_of(error)


def is_about_the_kind(error: ApiException) -> bool:
    """A 404 that names no object: the very kind is not served. One without a body does not say what it is about."""
    untyped: Any = error
    return status_of(error) == 404 and bool(untyped.body) and not text_at(body_of(error), "details", "name")


_REASONS = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    422: "Invalid",
    503: "ServiceUnavailable",
}
