"""Whose token is it? Static ones are known by their hash, those of ServiceAccounts by our signature.

A token of an account holds as long as the account is there, and the pod that it was given to.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import msgspec

from tessera.embedded.access.reading import Reading
from tessera.embedded.access.signing import ISSUER, Bound, Claims, Subject, sign, verify
from tessera.embedded.access.users import AUTHENTICATED, User, account_name, account_user
from tessera.embedded.documents import Frozen
from tessera.embedded.resources.table import PODS, SERVICE_ACCOUNTS
from tessera.embedded.store import Key

AUDIENCE = ISSUER
"""Whom a token is for that says nothing else: this server."""
_ABOUT = "authentication.kubernetes.io/"
_REMEMBERED = 1024


class Reviewed(NamedTuple):
    """Whose a token is and for whom of those who asked; or why it is nobody's."""

    user: User | None
    audiences: Sequence[str] = ()
    error: str = ""


class Issued(NamedTuple):
    token: str
    expires_at: int


def fingerprint(token: str) -> str:
    """What is kept of a static token."""
    return hashlib.sha256(token.encode()).hexdigest()


class Tokens:
    """`static` is by fingerprint; `key` signs, and `clock` tells seconds since 1970."""

    def __init__(
        self,
        reading: Reading,
        key: bytes,
        static: Mapping[str, User] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._reading = reading
        self._key = key
        self._static = dict(static or {})
        self._clock = clock
        self._claims = lru_cache(maxsize=_REMEMBERED)(partial(verify, key=key))
        self._uids: dict[Key, tuple[int, str]] = {}

    def admit(self, token: str, user: User) -> None:
        """Accept one more static token from now on."""
        self._static[fingerprint(token)] = user

    def authenticate(self, bearer: str) -> User | None:
        return self.review(bearer).user

    def review(self, bearer: str, audiences: Sequence[str] = ()) -> Reviewed:
        """For one of these audiences; for this server where none is named."""
        wanted = audiences or (AUDIENCE,)
        known = self._static.get(fingerprint(bearer))
        if known is not None:
            return _for_server(known, wanted)
        claims: Claims | None = self._claims(bearer)
        if claims is None or not self._holds(claims):
            return Reviewed(None, error="invalid bearer token")
        common = [audience for audience in wanted if audience in claims.aud]
        if not common:
            return Reviewed(None, error=f"[invalid bearer token, {_wrong_audience(claims.aud, wanted)}]")
        return Reviewed(_user(claims), common)

    def issue(
        self, account: Frozen, *, audiences: Sequence[str], lasting_s: int, token_id: str, pod: Frozen | None = None
    ) -> Issued:
        """A token that speaks for the account, bound to the pod if there is one."""
        now = int(self._clock())
        metadata = account["metadata"]
        node = pod["spec"].get("nodeName") if pod else None
        bound = Bound(
            namespace=metadata["namespace"],
            serviceaccount=_subject(account),
            pod=_subject(pod) if pod else None,
            node=Subject(node) if node else None,
        )
        claims = Claims(
            aud=list(audiences) or [AUDIENCE],
            exp=now + lasting_s,
            iat=now,
            iss=ISSUER,
            jti=token_id,
            bound=bound,
            nbf=now,
            sub=account_name(metadata["namespace"], metadata["name"]),
        )
        return Issued(sign(claims, self._key), claims.exp)

    def _holds(self, claims: Claims) -> bool:
        if claims.iss != ISSUER or not claims.nbf <= self._clock() < claims.exp:
            return False
        namespace, pod = claims.bound.namespace, claims.bound.pod
        if not self._is_there(SERVICE_ACCOUNTS.resource, namespace, claims.bound.serviceaccount):
            return False
        return pod is None or self._is_there(PODS.resource, namespace, pod)

    def _is_there(self, resource: str, namespace: str, subject: Subject) -> bool:
        return self._uid_of(Key(resource, namespace, subject.name)) == subject.uid

    def _uid_of(self, key: Key) -> str | None:
        """Remembered by version: every request asks."""
        found = self._reading.get(key)
        if found is None:
            return None
        version, uid = self._uids.get(key, (0, ""))
        if version != found.version:
            uid = found.document()["metadata"].get("uid", "")
            if len(self._uids) >= _REMEMBERED:
                self._uids.clear()
            self._uids[key] = (found.version, uid)
        return uid


def _for_server(user: User, wanted: Sequence[str]) -> Reviewed:
    if AUDIENCE not in wanted:
        return Reviewed(None, error=f"[invalid bearer token, {_wrong_audience([AUDIENCE], wanted)}]")
    if AUTHENTICATED not in user.groups:
        user = msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED))
    return Reviewed(user, [AUDIENCE])


def _wrong_audience(given: Sequence[str], wanted: Sequence[str]) -> str:
    shown = (msgspec.json.encode(list(audiences)).decode() for audiences in (given, wanted))
    return "token audiences {} is invalid for the target audiences {}".format(*shown)


def _subject(document: Frozen) -> Subject:
    return Subject(document["metadata"]["name"], document["metadata"]["uid"])


def _user(claims: Claims) -> User:
    account, pod, node = claims.bound.serviceaccount, claims.bound.pod, claims.bound.node
    extra = {f"{_ABOUT}credential-id": (f"JTI={claims.jti}",)}
    if pod:
        extra |= {f"{_ABOUT}pod-name": (pod.name,), f"{_ABOUT}pod-uid": (pod.uid,)}
    if node:
        extra[f"{_ABOUT}node-name"] = (node.name,)
    return account_user(claims.bound.namespace, account.name, account.uid, extra)
