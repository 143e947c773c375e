"""One HTTPS request to a webhook. The only module of admission that opens a socket."""

import asyncio
import ssl
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple, Protocol
from urllib.parse import SplitResult, urlsplit

import httptools

MAX_ANSWER_BYTES = 8 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024


class Endpoint(NamedTuple):
    """`authorities` are PEM, none for those of the system. `address` is where to connect, if not where the URL says."""

    url: str
    authorities: bytes = b""
    address: tuple[str, int] | None = None


class Answered(NamedTuple):
    status: int
    body: bytes


class CallFailed(Exception):
    """Nobody answered, or nothing that can be understood."""


class Call(Protocol):
    """Sends JSON to an endpoint. Raises CallFailed."""

    async def __call__(self, endpoint: Endpoint, body: bytes, timeout_s: float) -> Answered: ...


async def post(endpoint: Endpoint, body: bytes, timeout_s: float) -> Answered:
    said = f'Post "{endpoint.url}"'
    try:
        async with asyncio.timeout(timeout_s):
            return await _exchange(endpoint, body)
    except TimeoutError:
        raise CallFailed(f"{said}: context deadline exceeded: no answer within {timeout_s:g} s") from None
    except (OSError, ValueError, httptools.HttpParserError) as error:
        raise CallFailed(f"{said}: {error or type(error).__name__}") from None


async def _exchange(endpoint: Endpoint, body: bytes) -> Answered:
    url = urlsplit(endpoint.url)
    if url.scheme != "https" or not url.hostname:
        raise CallFailed(f'"{endpoint.url}" is no address of a webhook, expected one that begins with https://')
    host, port = endpoint.address or (url.hostname, url.port or 443)
    context = _context(endpoint.authorities)
    reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=url.hostname)
    try:
        writer.write(_head(url, len(body)) + body)
        return await _answer(reader)
    finally:
        writer.transport.abort()  # a farewell in TLS would only wait for the other side's
        with suppress(OSError):
            await writer.wait_closed()


@lru_cache(maxsize=64)
def _context(authorities: bytes) -> ssl.SSLContext:
    """Made once for each bundle: reading one takes longer than a request."""
    try:
        context = ssl.create_default_context(cadata=authorities.decode() or None)
    except (ssl.SSLError, ValueError) as error:
        raise CallFailed(f"caBundle cannot be used ({error}), expected certificates as PEM in base64") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _head(url: SplitResult, length: int) -> bytes:
    target = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
    lines = (
        f"POST {target} HTTP/1.1",
        f"Host: {url.netloc}",
        "User-Agent: tessera-admission",
        "Accept: application/json",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode()


class _Message:
    """What the parser tells of an answer."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.is_complete = False

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.is_complete = True


async def _answer(reader: asyncio.StreamReader) -> Answered:
    message = _Message()
    parser = httptools.HttpResponseParser(message)
    while not message.is_complete:
        received = await reader.read(_CHUNK_BYTES)
        if not received:
            raise CallFailed("the webhook closed the connection before its answer was complete")
        parser.feed_data(received)
        if len(message.body) > MAX_ANSWER_BYTES:
            raise CallFailed(f"the webhook answered more than {MAX_ANSWER_BYTES} bytes")
    return Answered(parser.get_status_code(), bytes(message.body))
