"""A server that answers what a test has put up for it, and keeps what it was asked."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from tessera.kube.access import Access
from tessera.kube.credentials import Credential

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Canned:
    def __init__(self) -> None:
        self.asked: list[web.Request] = []
        self.bodies: list[bytes] = []
        self._answers: list[Answer] = []
        self.server = ""

    def answers(self, status: int = 200, body: str = "{}", **headers: str) -> None:
        async def answer(_: web.Request) -> web.Response:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(status=status, text=body, headers=named)

        self._answers.append(answer)

    def does(self, answer: Answer) -> None:
        self._answers.append(answer)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        self.bodies.append(await request.read())
        return await self._answers.pop(0)(request)


class Tokens:
    """Credentials that hand out the next token once the last was refused."""

    def __init__(self) -> None:
        self.number = 1

    async def current(self) -> Credential:
        return Credential((("Authorization", f"Bearer token-{self.number}"),))

    def forget(self, refused: Credential) -> None:
        if dict(refused.headers)["Authorization"].endswith(f"-{self.number}"):
            self.number += 1


@asynccontextmanager
async def canned_server() -> AsyncIterator[Canned]:
    canned = Canned()
    runner = web.AppRunner(_application(canned), shutdown_timeout=0.1)
    await runner.setup()
    listening = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listening).start()
    canned.server = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        yield canned
    finally:
        await runner.cleanup()


def _application(canned: Canned) -> web.Application:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", canned.handle)
    return application


def access_to(server: str) -> Access:
    return Access(server=server, credentials=Tokens())


async def hang(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError("an event that nobody sets")


async def begin_and_hang(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"begun\n")
    return await hang(request)


async def begin_and_cut(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"begun\n")
    assert request.transport is not None
    request.transport.abort()
    return response


def status(reason: str) -> str:
    return msgspec.json.encode({"kind": "Status", "reason": reason, "message": reason}).decode()
