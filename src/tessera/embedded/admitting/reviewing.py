"""AdmissionReviews: what a webhook is asked, and what its answer means."""

import base64
import binascii
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, cast

import msgspec

from tessera.embedded.admitting.calling import Answered, CallFailed, Endpoint
from tessera.embedded.admitting.registrations import Webhook
from tessera.embedded.admitting.requests import Request
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import ApiRefusal

_API_VERSION = "admission.k8s.io/v1"
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
_JSON_PATCH = "JSONPatch"
_INVALID = "webhook returned invalid response"

Resolve = Callable[[str, str, int], tuple[str, int] | None]
"""Where a Service listens, by namespace, name and port; None if nobody does."""


class Response(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    allowed: bool
    status: dict[str, Any] | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: Sequence[str] | None = None

    def operations(self) -> list[Any]:
        """Of its patch. Raises CallFailed."""
        if not self.patch:
            return []
        if self.patch_type != _JSON_PATCH:
            raise CallFailed(f"{_INVALID}: patchType is {self.patch_type}, expected {_JSON_PATCH}")
        try:
            return msgspec.json.decode(base64.b64decode(self.patch, validate=True), type=list[Any])
        except (binascii.Error, msgspec.DecodeError) as error:
            raise CallFailed(f"{_INVALID}: its patch cannot be read: {error}") from None


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    response: Response
    api_version: str = ""


def admission_request(request: Request) -> Document:
    """Without the objects, as expressions see it too; what is empty is left out."""
    kind = _kind_of(request)
    resource = {"group": request.kind.group, "version": request.kind.version, "resource": request.kind.plural}
    named = {"subResource": request.subresource, "name": request.name, "namespace": request.namespace}
    said: Document = {"uid": request.uid, "kind": kind, "resource": resource}
    said |= {"requestKind": kind, "requestResource": resource}
    said |= {field: value for field, value in named.items() if value}
    said |= {"requestSubResource": request.subresource} if request.subresource else {}
    options = {"kind": _OPTIONS[request.operation], "apiVersion": "meta.k8s.io/v1", **request.options}
    return said | {
        "operation": request.operation,
        "userInfo": _user_info(request),
        "dryRun": request.dry_run,
        "options": options,
    }


def variables_of(request: Request) -> Document:
    """What expressions can see."""
    return {"object": request.object, "oldObject": request.old_object, "request": admission_request(request)}


def _kind_of(request: Request) -> Document:
    """What is sent to a subresource may be of another kind, such as a Binding."""
    said = request.document()
    group, _, version = str(said.get("apiVersion") or request.kind.api_version).rpartition("/")
    return {"group": group, "version": version, "kind": said.get("kind") or request.kind.kind}


def _user_info(request: Request) -> Document:
    user = request.user
    said = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    said |= {"extra": {key: list(values) for key, values in user.extra.items()}}
    return {field: value for field, value in said.items() if value}


def written_review(request: Request) -> bytes:
    asked = admission_request(request) | {"object": request.object, "oldObject": request.old_object}
    return msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": _API_VERSION, "request": asked})


def read_review(answered: Answered, uid: str) -> Response:
    """Raises CallFailed."""
    if answered.status != HTTPStatus.OK:
        raise CallFailed(f"the webhook answered {answered.status}, expected 200")
    try:
        review = msgspec.json.decode(answered.body, type=_Review)
    except msgspec.DecodeError as error:
        raise CallFailed(f"{_INVALID}: {error}") from None
    if review.api_version != _API_VERSION:
        raise CallFailed(f"{_INVALID}: expected {_API_VERSION}, got {review.api_version}")
    if review.response.uid != uid:
        raise CallFailed(f'{_INVALID}: expected response.uid="{uid}", got "{review.response.uid}"')
    return review.response


def denial(hook: str, status: Frozen | None) -> ApiRefusal:
    """A code below 400 is no denial, so it is 400."""
    said = status or {}
    why = said.get("message") or said.get("reason")
    denied = f'admission webhook "{hook}" denied the request'
    message = f"{denied}: {why}" if why else f"{denied} without explanation"
    code = max(int(said.get("code") or 0), HTTPStatus.BAD_REQUEST)
    return ApiRefusal(code, said.get("reason") or "", message, cast("Document | None", said.get("details")))


def endpoint_of(hook: Webhook, resolve: Resolve) -> Endpoint:
    """Raises CallFailed. A Service is known by its name in the cluster, wherever it listens."""
    config = hook.client_config
    timeout = f"timeout={hook.timeout_seconds}s"
    service = config.service
    if service is None:
        joint = "&" if "?" in config.url else "?"
        return Endpoint(f"{config.url}{joint}{timeout}", config.authorities())
    address = resolve(service.namespace, service.name, service.port)
    if address is None:
        raise CallFailed(f'no endpoints available for service "{service.name}"')
    path = f"/{service.path.lstrip('/')}"
    url = f"https://{service.name}.{service.namespace}.svc:{service.port}{path}?{timeout}"
    return Endpoint(url, config.authorities(), address)
