"""HTTP for components: routes that take bytes and give bytes, health, readiness, metrics."""

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tessera.bodies import Disconnected, TooLarge, read_body
from tessera.errors import InvalidInput, InvalidRequest, NotReady

Handler = Callable[[bytes], Awaitable[bytes | Response]]
Page = Callable[[], Awaitable[Response]]
Answer = Callable[[Request], Awaitable[Response]]
NO_POSTS: Mapping[str, Handler] = {}
NO_PAGES: Mapping[str, Page] = {}
KEEP_ALIVE_S = 600
"""kube-scheduler and the API server keep idle connections; a new TLS handshake would cost more than the answer."""
STOP_S = 10
"""An answer under way is finished when we stop; a peer that does not hang up is not waited for longer than this."""
MOST_BYTES = 256 * 2**20
"""Whoever sends whole nodes sends much."""


class Listener(NamedTuple):
    """Without `tls` plain HTTP. `listening` is a socket that was opened beforehand, and so are `others`.

    WebSockets are spoken only where they are asked for: nobody else loads them.
    """

    app: ASGIApp
    host: str
    port: int
    tls: ssl.SSLContext | None = None
    listening: socket.socket | None = None
    others: Sequence[socket.socket] = ()
    web_sockets: bool = False


def make_app(
    posts: Mapping[str, Handler] = NO_POSTS,
    *,
    is_ready: Callable[[], bool],
    metrics: CollectorRegistry | None = None,
    pages: Mapping[str, Page] = NO_PAGES,
    most_bytes: int = MOST_BYTES,
) -> ASGIApp:
    """`posts` answer JSON unless they say otherwise; a query may be part of the path.

    `pages` are what GET shows beside /healthz and /readyz. A body of more than `most_bytes` is not read to its end.
    """

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok")

    async def readyz(_: Request) -> Response:
        return PlainTextResponse("ok") if is_ready() else PlainTextResponse("not ready", status_code=503)

    async def show_metrics() -> Response:
        return Response(generate_latest(metrics), media_type=CONTENT_TYPE_LATEST) if metrics else Response()

    shown = {"/metrics": show_metrics, **pages} if metrics else pages
    verbs = {path: _Post(handler, most_bytes) for path, handler in posts.items()}
    routes = [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        *(Route(path, _shown(page)) for path, page in shown.items()),
        *(Route(path, verb, methods=["POST"]) for path, verb in verbs.items() if "?" not in path),
    ]
    return _straight_to(verbs, Starlette(routes=routes))


def _straight_to(posts: Mapping[str, ASGIApp], others: ASGIApp) -> ASGIApp:
    """What is asked for each pod does not pass the layers of a web framework; all else does."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        post = _find(posts, scope) if scope["type"] == "http" and scope["method"] == "POST" else None
        await (post or others)(scope, receive, send)

    return app


def _find(posts: Mapping[str, ASGIApp], scope: Scope) -> ASGIApp | None:
    """With its query where a verb is named so, else without: a query that says nothing to us is no mistake."""
    path, query = scope["path"], scope["query_string"]
    with_query = posts.get(f"{path}?{query.decode('latin-1')}") if query else None
    return with_query or posts.get(path)


def _shown(page: Page) -> Answer:
    async def answer(_: Request) -> Response:
        return await page()

    return answer


class _Post:
    """One verb as an app of its own."""

    def __init__(self, handler: Handler, most_bytes: int) -> None:
        self._handler = handler
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            said = await self._answer(receive)
        except Disconnected:
            return
        if isinstance(said, Response):
            await said(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(said))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": said})

    async def _answer(self, receive: Receive) -> bytes | Response:
        try:
            return await self._handler(await read_body(receive, self._most_bytes))
        except TooLarge:
            return PlainTextResponse(f"the body has more than {self._most_bytes} bytes\n", status_code=413)
        except InvalidInput as error:
            return PlainTextResponse(f"{error}\n", status_code=400)
        except NotReady as error:
            return PlainTextResponse(f"{error}\n", status_code=503)


def either(first: Handler, second: Handler) -> Handler:
    """For two who say the same word and mean different messages: the second is asked about what the first cannot read.

    If neither can, the first says why.
    """

    async def answer(body: bytes) -> bytes | Response:
        try:
            return await first(body)
        except InvalidInput as error:
            try:
                return await second(body)
            except InvalidInput:
                raise error from None

    return answer


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs several of its kind."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve(app: ASGIApp, host: str, port: int) -> None:
    """Until SIGTERM or SIGINT, or until cancelled."""
    await serve_all(Listener(app, host, port))


async def serve_all(*listeners: Listener) -> None:
    """All of them until SIGTERM or SIGINT, or until cancelled. None serves, if one cannot be listened on."""
    over = asyncio.Event()
    set_at_signals(over)
    await serve_until(over, *listeners, stop_s=STOP_S)


def set_at_signals(over: asyncio.Event) -> None:
    """By SIGTERM and SIGINT, which end nothing by themselves from now on."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)


async def serve_until(over: asyncio.Event, *listeners: Listener, stop_s: int) -> None:
    """Answers under way when it is over are waited for so long."""
    sockets = [[listener.listening or listen(listener.host, listener.port), *listener.others] for listener in listeners]
    servers = [_Server(_config(listener, stop_s)) for listener in listeners]
    async with asyncio.TaskGroup() as tasks:
        for server, listening in zip(servers, sockets, strict=True):
            tasks.create_task(server.serve(sockets=listening))
        await over.wait()
        for server in servers:
            server.should_exit = True


class _WebSocket(asyncio.Protocol):
    """Loaded when the first one is opened: most who serve see none, and a start need not wait for it."""

    def __new__(cls, *args: Any, **options: Any) -> asyncio.Protocol:
        from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

        return WSProtocol(*args, **options)


def _config(listener: Listener, stop_s: int) -> uvicorn.Config:
    config = uvicorn.Config(
        listener.app,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        ws=_WebSocket if listener.web_sockets else "none",
        ws_per_message_deflate=False,
        log_level="warning",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=stop_s,
    )
    config.load()
    config.ssl = listener.tls
    return config


def listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise InvalidRequest(f"{host}:{port} cannot be listened on: {why}; name another address") from error
