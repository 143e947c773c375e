"""What an API server asks an admission webhook, and what it is answered.

Versions v1 and v1beta1 have the same fields as far as we read them; an answer has the version of its question. Fields
that we do not read may hold anything.
"""

from base64 import b64encode
from typing import Any, Literal

import msgspec

from tessera.errors import InvalidInput
from tessera.model.mismatches import explain_mismatch

Version = Literal["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class ObjectKind(_Part, frozen=True, kw_only=True):
    group: str | None = None
    kind: str


class Question(_Part, frozen=True, kw_only=True):
    """One admission request. The namespace counts here: the object may not have been told its own yet."""

    uid: str
    kind: ObjectKind
    operation: str
    sub_resource: str | None = None
    namespace: str | None = None
    object: Any = None


class Review(_Part, frozen=True, kw_only=True):
    api_version: Version
    kind: Literal["AdmissionReview"]
    request: Question


class Operation(msgspec.Struct, frozen=True):
    """One step of a JSON patch (RFC 6902)."""

    op: Literal["add", "replace"]
    path: str
    value: Any


class _Status(_Part, frozen=True, kw_only=True):
    code: int
    reason: str
    message: str


class _Response(_Part, frozen=True, kw_only=True, omit_defaults=True):
    uid: str
    allowed: bool
    patch_type: str | None = None
    patch: str | None = None
    warnings: tuple[str, ...] = ()
    status: _Status | None = None


class _Answer(_Part, frozen=True, kw_only=True):
    api_version: Version
    kind: Literal["AdmissionReview"] = "AdmissionReview"
    response: _Response


def decode_review(body: bytes) -> Review:
    try:
        document: object = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"admission review: not readable as JSON ({error}), expected one AdmissionReview") from None
    try:
        return msgspec.convert(document, Review)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"admission review: {explain_mismatch(error, document)}") from None


def encode_approval(review: Review, patch: tuple[Operation, ...] = (), warnings: tuple[str, ...] = ()) -> bytes:
    response = _Response(
        uid=review.request.uid,
        allowed=True,
        patch_type="JSONPatch" if patch else None,
        patch=b64encode(msgspec.json.encode(patch)).decode() if patch else None,
        warnings=warnings,
    )
    return _encode(review, response)


def encode_denial(review: Review, sentence: str) -> bytes:
    status = _Status(code=403, reason="Forbidden", message=sentence)
    return _encode(review, _Response(uid=review.request.uid, allowed=False, status=status))


def _encode(review: Review, response: _Response) -> bytes:
    return msgspec.json.encode(_Answer(api_version=review.api_version, response=response))
