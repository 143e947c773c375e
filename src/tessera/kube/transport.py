"""HTTP to the API server: one connection pool, deadlines, credentials, and errors of our own.

aiohttp is known here and nowhere else; none of its exceptions leaves. A request ends by its deadline, whatever happens.
A stream has none, but a watch has to keep talking: one that stays silent past `watch_silence_s` is given up, and TCP
keepalive finds a dead peer sooner. Large answers are asked for compressed: that halves what a list of ten thousand pods
costs us, because decompressing is less work than decrypting, and takes no longer.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec
from yarl import URL

from tessera import __version__
from tessera.errors import ApiError, Unauthorized, Unreachable
from tessera.kube.access import Access
from tessera.kube.credentials import Credential
from tessera.kube.requests import Request, read_error, retry_wait_s
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.kube.tls import Certificate, make_context

USER_AGENT = f"tessera/{__version__}"
GATHERING_S = 0.004


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long we wait and how much we open at once; durations in seconds.

    Bookmarks come about once a minute, so a watch that is silent for two and a half has lost its server.
    """

    request_s: float = 30.0
    connect_s: float = 5.0
    watch_silence_s: float = 150.0
    idle_connection_s: float = 60.0
    connections: int = 64


class Reply:
    """An answer that is yes; its body is read at once or as it comes.

    While it `gathers`, what comes is left to pile up for a moment between two reads. To wake up for each of ten
    thousand small parts would cost more than the parts themselves.
    """

    def __init__(self, response: aiohttp.ClientResponse, request: Request) -> None:
        self._response = response
        self._request = request
        self.gathers = False

    async def read(self) -> bytes:
        with _own_errors(self._request):
            return await self._response.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        """What has arrived, as soon as anything has. Ends when the server ends the answer in an orderly way."""
        with _own_errors(self._request):
            async for chunk in self._response.content.iter_any():
                yield chunk
                if self.gathers:
                    await self._rest()

    async def _rest(self) -> None:
        connection = self._response.connection
        if connection is None or connection.protocol is None:  # all has arrived
            return
        connection.protocol.pause_reading()
        await asyncio.sleep(GATHERING_S)
        connection.protocol.resume_reading()


class Transport:
    """Use as `async with`. One pool for everybody who talks to this API server in this event loop."""

    def __init__(self, access: Access, *, limits: Limits | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.access = access
        self.limits = limits or Limits()
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[Certificate | None, ssl.SSLContext] | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            limit=self.limits.connections,
            keepalive_timeout=self.limits.idle_connection_s,
            socket_factory=_make_socket,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": USER_AGENT, "Accept": "application/json", "Accept-Encoding": "gzip"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.limits.connect_s),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, request: Request) -> bytes:
        deadline_s = self.limits.request_s if request.deadline_s is None else request.deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                return await self._send(request, deadline_s)
        except TimeoutError:
            raise self._too_late(request, deadline_s) from None

    @asynccontextmanager
    async def stream(self, request: Request, *, silence_s: float | None) -> AsyncGenerator[Reply]:
        """Open a request whose answer has no end. Only the opening has a deadline."""
        deadline_s = self.limits.request_s
        try:
            async with asyncio.timeout(deadline_s):
                response = await self._open(request, deadline_s, sock_read=silence_s)
        except TimeoutError:
            raise self._too_late(request, deadline_s) from None
        try:
            yield Reply(response, request)
        finally:
            _drop(response)

    def _too_late(self, request: Request, deadline_s: float) -> Unreachable:
        return Unreachable(f"{request}: no answer within {deadline_s:g} s from {self.access.server}")

    async def _send(self, request: Request, deadline_s: float) -> bytes:
        params = {**request.params, "timeout": f"{deadline_s:g}s"}
        response = await self._open(msgspec.structs.replace(request, params=params), deadline_s)
        async with response:
            return await Reply(response, request).read()

    async def _open(
        self, request: Request, deadline_s: float, *, sock_read: float | None = None
    ) -> aiohttp.ClientResponse:
        """The first answer that is yes, having waited where the server asked for it."""
        refused: Credential | None = None
        until_s = self._clock.monotonic_s() + deadline_s
        tries = 0
        while True:
            tries += 1
            credential = await self.access.credentials.current()
            try:
                return await self._open_once(request, credential, sock_read)
            except Unauthorized:
                if refused is not None:
                    raise
                refused = credential
                self.access.credentials.forget(refused)
            except ApiError as error:
                wait_s = retry_wait_s(error, request, tries=tries, left_s=until_s - self._clock.monotonic_s())
                if wait_s is None:
                    raise
                await self._clock.sleep(wait_s)

    async def _open_once(
        self, request: Request, credential: Credential, sock_read: float | None
    ) -> aiohttp.ClientResponse:
        with _own_errors(request):
            response = await self._started().request(
                request.method,
                URL(self.access.server + request.path, encoded=True).with_query(request.params),
                data=None if request.body is None else msgspec.json.encode(request.body),
                headers=_headers(request, credential),
                allow_redirects=False,
                proxy=self.access.proxy,
                ssl=self._tls_for(credential.certificate),
                server_hostname=self.access.trust.server_name,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.limits.connect_s, sock_read=sock_read),
            )
            if response.status < 300:
                return response
            async with response:
                body = await response.read()
        raise read_error(request, body, status=response.status, retry_after=response.headers.get("Retry-After"))

    def _tls_for(self, certificate: Certificate | None) -> ssl.SSLContext:
        """The same context for the same certificate: connections are pooled by it."""
        if self._tls is None or self._tls[0] != certificate:
            self._tls = (certificate, make_context(self.access.trust, certificate))
        return self._tls[1]

    def _started(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the transport is used before it is started or after its end; use `async with`")
        return self._session


def _headers(request: Request, credential: Credential) -> list[tuple[str, str]]:
    content_type = () if request.body is None else (("Content-Type", request.content_type),)
    return [*credential.headers, *content_type]


def _drop(response: aiohttp.ClientResponse) -> None:
    """Leave a stream at once: a TLS farewell would keep the socket until a peer answers that may be gone."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


@contextmanager
def _own_errors(request: Request) -> Generator[None]:
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(f"{request}: the API server cannot be reached: {_explain(error)}") from error


def _explain(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):  # its own text shows an object's address
        return f"{error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    return str(error) or type(error).__name__


def _make_socket(address: Any) -> socket.socket:
    """Notice within about a minute that the other end is gone without a word."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    return made
