"""What goes back: a status, headers and a body, or a body that goes on for a while."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, MutableMapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, NamedTuple

from tessera.bodies import Receive
from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.serving.envelopes import encode

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"
NO_HEADERS: tuple[tuple[bytes, bytes], ...] = ()


class Answer(NamedTuple):
    body: bytes
    status: int = 200
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = NO_HEADERS


Write = Callable[[bytes], Awaitable[None]]


class Stream(NamedTuple):
    """A body that is written in parts, until there are no more or nobody listens."""

    run: Callable[[Write], Coroutine[Any, Any, None]]
    content_type: bytes = JSON


Reply = Answer | Stream


def said(document: Frozen, status: int = HTTPStatus.OK) -> Answer:
    return Answer(encode(document), int(status))


def refused(refusal: ApiRefusal) -> Answer:
    return said(refusal.status(), refusal.code)


def warned(answer: Answer, warnings: Iterable[str]) -> Answer:
    """With a header for each, once."""
    headers = tuple((b"warning", _warning(text)) for text in dict.fromkeys(warnings))
    return answer._replace(headers=(*answer.headers, *headers)) if headers else answer


def _warning(text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'299 - "{escaped}"'.encode()


async def send_answer(answer: Answer, send: Send, *, body: bool = True) -> None:
    headers = [
        (b"content-type", answer.content_type),
        (b"content-length", b"%d" % len(answer.body)),
        *answer.headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body if body else b""})


async def send_while_heard(stream: Stream, receive: Receive, send: Send) -> None:
    """Until it ends or nobody listens any more."""
    sending = asyncio.ensure_future(_send_parts(stream, send))
    leaving = asyncio.ensure_future(_hang_up(receive))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        for task in (sending, leaving):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _send_parts(stream: Stream, send: Send) -> None:
    headers = [(b"content-type", stream.content_type), (b"cache-control", b"no-cache, private")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": True})

    async def write(part: bytes) -> None:
        await send({"type": "http.response.body", "body": part, "more_body": True})

    await stream.run(write)
    await send({"type": "http.response.body", "body": b""})


def denying(send: Send) -> Send:
    """To whoever asked for a WebSocket, an answer of HTTP is a denial."""

    async def send_denial(message: MutableMapping[str, Any]) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return send_denial


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


def read_headers(scope: Scope) -> Mapping[bytes, bytes]:
    return dict(scope["headers"])
