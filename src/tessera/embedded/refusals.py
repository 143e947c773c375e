"""What is refused, as the API tells it: a code, a reason, one sentence, and a cause for each field.

The sentences are Kubernetes' own where clients are known to read them, and no others.
"""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from tessera.embedded.documents import Document
from tessera.embedded.kinds import Kind


class Cause(NamedTuple):
    """Why one field is not as it should be. `reason` is one of Kubernetes': FieldValueInvalid, FieldValueRequired …"""

    reason: str
    message: str
    field: str


class ApiRefusal(Exception):
    def __init__(self, code: int, reason: str, message: str, details: Document | None = None) -> None:
        super().__init__(message)
        self.code = int(code)
        self.reason = reason
        self.message = message
        self.details = details or {}
        self._tells_details = details is not None

    def status(self) -> Document:
        """The Status object that goes back."""
        said: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        said |= {"reason": self.reason, "code": self.code}
        return said | ({"details": self.details} if self._tells_details else {})


def not_found(kind: Kind, name: str) -> ApiRefusal:
    return ApiRefusal(HTTPStatus.NOT_FOUND, "NotFound", f'{kind.resource} "{name}" not found', _about(kind, name))


def already_exists(kind: Kind, name: str) -> ApiRefusal:
    message = f'{kind.resource} "{name}" already exists'
    return ApiRefusal(HTTPStatus.CONFLICT, "AlreadyExists", message, _about(kind, name))


def conflict(kind: Kind, name: str, why: str) -> ApiRefusal:
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return ApiRefusal(HTTPStatus.CONFLICT, "Conflict", message, _about(kind, name))


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> ApiRefusal:
    """`causes` must not be empty."""
    told = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    full = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details: Document = {"group": kind.group, "kind": kind.kind, "name": name, "causes": _written(causes)}
    message = f'{full} "{name}" is invalid: {listed}'
    return ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, _without_empty(details))


def bad_request(message: str) -> ApiRefusal:
    return ApiRefusal(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def forbidden(kind: Kind, name: str, why: str) -> ApiRefusal:
    message = f'{kind.resource} "{name}" is forbidden: {why}'
    return ApiRefusal(HTTPStatus.FORBIDDEN, "Forbidden", message, _about(kind, name))


def expired(message: str) -> ApiRefusal:
    return ApiRefusal(HTTPStatus.GONE, "Expired", message)


def not_allowed(message: str = "the server does not allow this method on the requested resource") -> ApiRefusal:
    return ApiRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", message)


def unsupported_media_type(message: str) -> ApiRefusal:
    return ApiRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)


def _about(kind: Kind, name: str) -> Document:
    return _without_empty({"name": name, "group": kind.group, "kind": kind.plural})


def _written(causes: Iterable[Cause]) -> list[Document]:
    return [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]


def _without_empty(details: dict[str, Any]) -> Document:
    return {key: value for key, value in details.items() if value}
