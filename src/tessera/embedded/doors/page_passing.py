"""Fetch a page from a pod while its reader waits, and pass it on piece by piece."""

import asyncio
import ssl
from contextlib import suppress
from functools import cache
from http import HTTPStatus

import httptools

from tessera.embedded.doors import pages
from tessera.embedded.doors.page_sources import Source
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.serving.answers import Receive, Scope, Send

CHUNK_BYTES = 64 * 1024
CONNECT_S = 10.0


async def pass_page(source: Source, scope: Scope, receive: Receive, send: Send) -> None:
    """Raises ApiRefusal, if nobody answers there."""
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(
                source.address, source.port, ssl=_trusting() if source.is_secure else None
            )
    except OSError as error:
        raise _unreached(f"{source.address}:{source.port}: {error.strerror or 'no answer'}") from None
    try:
        await _exchange(source, scope, receive, send, reader, writer)
    finally:
        writer.transport.abort()


async def _exchange(
    source: Source,
    scope: Scope,
    receive: Receive,
    send: Send,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    prefix, page = pages.split_path(scope["raw_path"])
    writer.write(pages.request_head(scope["method"], page, scope["query_string"], scope["headers"], source))
    asking = asyncio.ensure_future(_send_body(writer, receive, in_chunks=pages.is_chunked(scope["headers"])))
    answering = asyncio.ensure_future(_Answer(prefix, scope["method"]).pass_on(reader, send))
    try:
        # The first ends only when the other side has hung up: then nobody waits for the second.
        await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            answering.result()
    finally:
        for task in (asking, answering):
            task.cancel()
        await asyncio.gather(asking, answering, return_exceptions=True)


async def _send_body(writer: asyncio.StreamWriter, receive: Receive, *, in_chunks: bool) -> None:
    """Then listen until the asker leaves. A server that answers without reading on is no mistake."""
    while (message := await receive())["type"] == "http.request":
        data: bytes = message.get("body", b"")
        with suppress(OSError):
            if data:
                writer.write(pages.chunk(data) if in_chunks else data)
            if in_chunks and not message.get("more_body"):
                writer.write(pages.chunk(b""))
            await writer.drain()


class _Answer:
    """What the parser tells of the page, until its headers are complete and from then on."""

    def __init__(self, prefix: bytes, method: str) -> None:
        self._prefix = prefix
        self._has_body = method != "HEAD"
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._has_head = False
        self._is_complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._has_head = True
        self._is_complete = not self._has_body

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._is_complete = True

    async def pass_on(self, reader: asyncio.StreamReader, send: Send) -> None:
        parser, is_begun = httptools.HttpResponseParser(self), False
        while not self._is_complete:
            received = await _read(reader)
            if not received and not is_begun:
                raise _unreached("the connection was closed before the answer began")
            if not received:
                break  # a page without a length ends so
            try:
                parser.feed_data(received)
            except httptools.HttpParserError as error:
                if not is_begun:
                    raise _unreached(f"the answer is not HTTP: {error}") from None
                break
            if self._has_head and not is_begun:
                headers = pages.answer_headers(self._headers, self._prefix)
                status = parser.get_status_code()
                await send({"type": "http.response.start", "status": status, "headers": headers})
                is_begun = True
            await self._send_pieces(send)
        await send({"type": "http.response.body", "body": b""})

    async def _send_pieces(self, send: Send) -> None:
        body, self._body = b"".join(self._body), []
        if body:
            await send({"type": "http.response.body", "body": body, "more_body": True})


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK_BYTES)
    except OSError:
        return b""


def _unreached(why: str) -> ApiRefusal:
    message = f"error trying to reach service: {why}"
    return ApiRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", message)


@cache
def _trusting() -> ssl.SSLContext:
    """Pods sign for themselves, and nobody but this machine is at a pod's address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
