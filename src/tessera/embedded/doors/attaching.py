"""Attaching to a container: what it prints from now on, and what it is typed, over a WebSocket."""

import asyncio

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
from tessera.embedded.doors.commands import Wanted, carry, find_running, read_wanted, show
from tessera.embedded.doors.endings import SUCCESS
from tessera.embedded.doors.web_sockets import WebSocket
from tessera.embedded.runtime.consoles import Console
from tessera.embedded.runtime.logs import LogRequest
from tessera.embedded.runtime.runtime import Runtime
from tessera.embedded.serving.answers import Receive, Scope, Send

FROM_NOW_ON = LogRequest(tail_lines=0)
CHANNELS = {"stdout": Channel.STDOUT, "stderr": Channel.STDERR}


async def attach_over(runtime: Runtime, pod: Frozen, scope: Scope, receive: Receive, send: Send) -> None:
    wanted = read_wanted(scope["query_string"])
    container = find_running(runtime, pod, scope)
    console = container.console
    if console is not None:
        await _Attached(await WebSocket.accept(scope, receive, send, choose_protocol), console, wanted).run()
        return
    printed = runtime.read_log(container, FROM_NOW_ON, follow=True)
    socket = await WebSocket.accept(scope, receive, send, choose_protocol)

    async def show_log() -> Document:
        await show(socket, Channel.STDOUT, printed, shown=wanted.stdout)
        return SUCCESS

    await carry(socket, _drain(socket), show_log())


class _Attached:
    """One client at a console, until the container ends or the client's input does."""

    def __init__(self, socket: WebSocket, console: Console, wanted: Wanted) -> None:
        self._socket = socket
        self._console = console
        self._wanted = wanted
        self._has_typed_all = asyncio.Event()

    async def run(self) -> None:
        self._console.show_to(self._view)
        try:
            await carry(self._socket, self._hear(), self._wait_for_the_end())
        finally:
            self._console.leave(self._view)
            if self._wanted.stdin and self._console.ends_with_its_first:
                self._console.end_input()

    async def _view(self, name: str, piece: bytes) -> None:
        if self._wanted.stdout if name == "stdout" else self._wanted.stderr:
            await self._socket.send(write_message(CHANNELS[name], piece))

    async def _hear(self) -> None:
        async for message in self._socket.messages():
            match read_message(message):
                case Input(data) if self._wanted.stdin:
                    self._console.send(data)
                case EndOfInput() if self._wanted.stdin:
                    self._note_end_of_input()
                case Size() as size if self._wanted.terminal:
                    self._console.resize(size.rows, size.columns)
                case _:
                    pass

    def _note_end_of_input(self) -> None:
        """Either the container's input ends as well, and its output tells what comes of it, or the client is done."""
        if self._console.ends_with_its_first:
            self._console.end_input()
        else:
            self._has_typed_all.set()

    async def _wait_for_the_end(self) -> Document:
        ends = [asyncio.ensure_future(one) for one in (self._console.ended(), self._has_typed_all.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        return SUCCESS


async def _drain(socket: WebSocket) -> None:
    async for _ in socket.messages():
        continue
