"""Who we say we are: headers and a client certificate, asked for anew before each request.

Tokens and certificates change under a running process: files are rewritten, plugins hand out the next one. So nobody
keeps a credential; they ask `current`, and say `forget` when the API server refused what they got.
"""

import base64
import binascii
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from tessera.errors import CredentialsFailed, InvalidKubeconfig
from tessera.kube.kubeconfig import User
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.kube.tls import Certificate

REREAD_S = 60.0


class Credential(msgspec.Struct, frozen=True):
    headers: tuple[tuple[str, str], ...] = ()
    certificate: Certificate | None = None

    def __repr__(self) -> str:
        return f"Credential(headers={[name for name, _ in self.headers]}, certificate={self.certificate})"


class Credentials(Protocol):
    async def current(self) -> Credential:
        """What to show now. Raises CredentialsFailed."""
        ...

    def forget(self, refused: Credential) -> None:
        """The API server refused this one: if it is still the current one, the next is to be fetched."""
        ...


class ReadCredentials:
    """Credentials that lie somewhere and are read again once a minute, because files are rotated in place."""

    def __init__(self, read: Callable[[], Credential], *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._read = read
        self._clock = clock
        self._known: Credential | None = None
        self._read_at_s = 0.0

    async def current(self) -> Credential:
        now_s = self._clock.monotonic_s()
        if self._known is None or now_s - self._read_at_s >= REREAD_S:
            self._known = self._read()
            self._read_at_s = now_s
        return self._known

    def forget(self, refused: Credential) -> None:
        if self._known is refused:
            self._known = None


def read_user(user: User) -> Credential:
    """What a kubeconfig user without a plugin shows."""
    return Credential((*_authorization(user), *impersonation(user)), read_certificate(user))


def impersonation(user: User) -> Iterator[tuple[str, str]]:
    if user.impersonate:
        yield "Impersonate-User", user.impersonate
    if user.impersonate_uid:
        yield "Impersonate-Uid", user.impersonate_uid
    for group in user.impersonate_groups or ():
        yield "Impersonate-Group", group
    for name, values in (user.impersonate_extra or {}).items():
        yield from ((f"Impersonate-Extra-{name}", value) for value in values)


def read_certificate(user: User) -> Certificate | None:
    chain = _pem(user.client_certificate_data, user.client_certificate, "client-certificate")
    key = _pem(user.client_key_data, user.client_key, "client-key")
    if chain is None and key is None:
        return None
    if chain is None or key is None:
        raise InvalidKubeconfig("user: client-certificate and client-key go together, expected both or neither")
    return Certificate(chain, key)


def bearer(token: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {token}"


def read_token(path: Path) -> str:
    token = read_file(path).decode().strip()
    if not token:
        raise CredentialsFailed(f"{path}: is empty, expected a token")
    return token


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsFailed(f"{path}: cannot be read ({error}), expected credentials") from None


def decode_data(data: str, field: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise InvalidKubeconfig(f"{field}-data: is not base64 ({error}), expected PEM in base64") from None


def _authorization(user: User) -> Iterator[tuple[str, str]]:
    if user.token_file:
        yield bearer(read_token(Path(user.token_file)))
    elif user.token:
        yield bearer(user.token)
    elif user.username:
        pair = base64.b64encode(f"{user.username}:{user.password or ''}".encode()).decode()
        yield "Authorization", f"Basic {pair}"


def _pem(data: str | None, path: str | None, field: str) -> bytes | None:
    """Data wins over a file, as it does in kubectl."""
    if data:
        return decode_data(data, field)
    return read_file(Path(path)) if path else None
