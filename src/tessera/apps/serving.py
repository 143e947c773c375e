"""HTTP for components: routes that take bytes and give bytes, health, readiness, metrics."""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager

import uvicorn
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tessera.errors import InvalidInput, InvalidRequest

Handler = Callable[[bytes], Awaitable[bytes]]
KEEP_ALIVE_S = 600
"""kube-scheduler and the API server keep idle connections; a new TLS handshake would cost more than the answer."""


def make_app(posts: Mapping[str, Handler], *, is_ready: Callable[[], bool], metrics: CollectorRegistry) -> Starlette:
    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok")

    async def readyz(_: Request) -> Response:
        return PlainTextResponse("ok") if is_ready() else PlainTextResponse("not ready", status_code=503)

    async def show_metrics(_: Request) -> Response:
        return Response(generate_latest(metrics), media_type=CONTENT_TYPE_LATEST)

    routes = [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", show_metrics)]
    return Starlette(
        routes=[*routes, *(Route(path, _posted(handler), methods=["POST"]) for path, handler in posts.items())]
    )


def _posted(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            return Response(await handler(await request.body()), media_type="application/json")
        except InvalidInput as error:
            return PlainTextResponse(f"{error}\n", status_code=400)

    return answer


class Server(uvicorn.Server):
    """Ends at a signal as if it had been asked politely, and not as if the signal had killed it."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


async def serve(app: Starlette, host: str, port: int) -> None:
    """Until SIGTERM or SIGINT, or until cancelled."""
    config = uvicorn.Config(app, access_log=False, lifespan="off", log_level="warning", timeout_keep_alive=KEEP_ALIVE_S)
    server = Server(config)
    try:
        await server.serve(sockets=[_listen(host, port)])
    except asyncio.CancelledError:
        server.should_exit = True
        raise


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise InvalidRequest(f"{host}:{port} cannot be listened on: {error.strerror}; name another address") from error
