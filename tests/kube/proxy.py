"""A TCP proxy in front of the API server that can cut, stall and hold off connections, as bad networks do."""

import asyncio
import socket
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    """Use as `async with`. `server` is its own URL; its answers are those of the server behind it."""

    def __init__(self, behind: str) -> None:
        url = urlsplit(behind)
        self._behind = (url.hostname, url.port)
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._answering = asyncio.Event()
        self._answering.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._is_refusing = False
        self.has_lost_one = asyncio.Event()
        self.connections = 0
        self.server = ""

    async def __aenter__(self) -> Self:
        listening = socket.create_server(("127.0.0.1", 0))
        self.server = f"https://127.0.0.1:{listening.getsockname()[1]}"
        self._listener = await asyncio.start_server(self._serve, sock=listening)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listener is not None
        self._listener.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Reset every connection there is."""
        for writer in self._writers:
            writer.transport.abort()

    def stall(self) -> None:
        """Let nothing through any more, and say nothing of it."""
        self._flowing.clear()

    def withhold_answers(self) -> None:
        """Let requests through, and nothing back."""
        self._answering.clear()

    def resume(self) -> None:
        self._flowing.set()
        self._answering.set()

    def refuse(self) -> None:
        """Cut, and take no new connections."""
        self._is_refusing = True
        self.cut()

    def accept(self) -> None:
        self._is_refusing = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_refusing:
            writer.transport.abort()
            return
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        try:
            onward_reader, onward = await asyncio.open_connection(*self._behind)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(onward)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pass_on(reader, onward, self._flowing))
            group.create_task(self._pass_on(onward_reader, writer, self._flowing, self._answering))
        self._writers -= {writer, onward}
        self.has_lost_one.set()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *gates: asyncio.Event) -> None:
        try:
            while data := await reader.read(1 << 16):
                for gate in gates:
                    await gate.wait()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()
