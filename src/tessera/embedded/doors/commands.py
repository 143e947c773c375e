"""A command in a container, over a WebSocket."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import structlog

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.doors.channels import (
    Channel,
    EndOfInput,
    Input,
    Size,
    choose_protocol,
    read_message,
    write_message,
)
from tessera.embedded.doors.containers import choose_container
from tessera.embedded.doors.endings import ending_of, not_begun
from tessera.embedded.doors.log_queries import is_asked
from tessera.embedded.doors.web_sockets import WebSocket
from tessera.embedded.refusals import bad_request
from tessera.embedded.runtime.container import Container
from tessera.embedded.runtime.exec import Session
from tessera.embedded.runtime.runtime import Runtime
from tessera.embedded.runtime.states import Running
from tessera.embedded.serving.answers import Receive, Scope, Send
from tessera.errors import StartRefused

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a query asks for. With a terminal there is no standard error of its own."""

    command: Sequence[str]
    stdin: bool
    stdout: bool
    stderr: bool
    terminal: bool


def read_wanted(query: bytes) -> Wanted:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    asked, terminal = dict(pairs), is_asked(dict(pairs), "tty")
    wanted = Wanted(
        command=[value for name, value in pairs if name == "command"],
        stdin=is_asked(asked, "stdin"),
        stdout=is_asked(asked, "stdout"),
        stderr=is_asked(asked, "stderr") and not terminal,
        terminal=terminal,
    )
    if not (wanted.stdin or wanted.stdout or wanted.stderr):
        raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
    return wanted


async def exec_over(runtime: Runtime, pod: Frozen, scope: Scope, receive: Receive, send: Send) -> None:
    wanted = read_wanted(scope["query_string"])
    if not wanted.command:
        raise bad_request("you must specify at least one command")
    container = find_running(runtime, pod, scope)
    socket = await WebSocket.accept(scope, receive, send, choose_protocol)
    try:
        session = await runtime.exec(container, wanted.command, stdin=wanted.stdin, terminal=wanted.terminal)
    except StartRefused as error:
        await _end(socket, not_begun(str(error)))
        return
    try:
        await carry(socket, _hear(socket, session), _show_all(socket, session, wanted))
    finally:
        session.kill()


def find_running(runtime: Runtime, pod: Frozen, scope: Scope) -> Container:
    """The container that a query means. ApiRefusal, if it does not run."""
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    name = choose_container(pod, query)
    container = runtime.container(pod["metadata"]["uid"], name)
    if container is None or not isinstance(container.record.state, Running):
        raise bad_request(f'container "{name}" in pod "{pod["metadata"]["name"]}" is not running')
    return container


async def carry(socket: WebSocket, hearing: Coroutine[Any, Any, None], showing: Coroutine[Any, Any, Document]) -> None:
    """Both ways, until all is shown, whose end is told then, or the other side has left."""
    heard, shown = asyncio.ensure_future(hearing), asyncio.ensure_future(showing)
    try:
        await asyncio.wait({heard, shown}, return_when=asyncio.FIRST_COMPLETED)
        if shown.done():
            await _end(socket, shown.result())
    except OSError:
        log.info("client left before the end was told")
    finally:
        for task in (heard, shown):
            task.cancel()
        await asyncio.gather(heard, shown, return_exceptions=True)


async def _hear(socket: WebSocket, session: Session) -> None:
    async for message in socket.messages():
        match read_message(message):
            case Input(data):
                session.send(data)
            case EndOfInput():
                session.end_input()
            case Size() as size:
                session.resize(size.rows, size.columns)
            case None:
                pass


async def _show_all(socket: WebSocket, session: Session, wanted: Wanted) -> Document:
    _, _, code = await asyncio.gather(
        show(socket, Channel.STDOUT, session.stdout, shown=wanted.stdout),
        show(socket, Channel.STDERR, session.stderr, shown=wanted.stderr),
        session.wait(),
    )
    return ending_of(code)


async def show(socket: WebSocket, channel: Channel, printed: AsyncIterator[bytes], *, shown: bool) -> None:
    """Read also if nobody wants to see it: a command waits for whoever reads it."""
    async for piece in printed:
        if shown:
            await socket.send(write_message(channel, piece))


async def _end(socket: WebSocket, status: Document) -> None:
    await socket.send(write_message(Channel.ERROR, msgspec.json.encode(status)))
    await socket.close()
