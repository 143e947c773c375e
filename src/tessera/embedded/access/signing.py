"""Tokens of ServiceAccounts: JSON Web Tokens, signed with a secret that only this server has.

The claims are Kubernetes' own, so that whoever looks inside finds what they expect. Who checks a token is always the
server, which is why one shared secret is enough.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Any

import msgspec

from tessera.embedded.documents import Document

ISSUER = "https://kubernetes.default.svc.cluster.local"
KEY_BYTES = 32
_HEADER: Document = {"alg": "HS256", "typ": "JWT"}


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that a token speaks for or is bound to."""

    name: str
    uid: str = ""


class Bound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The claim `kubernetes.io`."""

    namespace: str
    serviceaccount: Subject
    pod: Subject | None = None
    node: Subject | None = None


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    aud: list[str]
    exp: int
    iat: int
    iss: str
    jti: str
    bound: Bound = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


def sign(claims: Claims, key: bytes) -> str:
    signed = f"{_encoded(_HEADER)}.{_encoded(claims)}"
    return f"{signed}.{_signature(signed, key)}"


def verify(token: str, key: bytes) -> Claims | None:
    """What the token says, if we said it; whether it still holds is for others to judge."""
    signed, _, signature = token.rpartition(".")
    header, _, payload = signed.partition(".")
    if not hmac.compare_digest(signature.encode(), _signature(signed, key).encode()):
        return None
    try:
        if msgspec.json.decode(_decoded(header)) != _HEADER:
            return None
        return msgspec.json.decode(_decoded(payload), type=Claims)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None


def _signature(signed: str, key: bytes) -> str:
    return _text(hmac.new(key, signed.encode(), hashlib.sha256).digest())


def _encoded(part: Any) -> str:
    return _text(msgspec.json.encode(part))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
