"""Port-forward: connections to a pod's ports as streams of SPDY, inside a WebSocket.

Each connection is two streams that carry the same request's number: one for its bytes, one on which a complaint is sent
if it fails. Both are opened by the client.
"""

import asyncio
from contextlib import suppress

import msgspec
import structlog

from tessera.embedded.documents import Frozen
from tessera.embedded.doors.channel_forwarding import forward_channels, read_ports
from tessera.embedded.doors.channels import V4
from tessera.embedded.doors.spdy.frames import (
    BrokenFrame,
    Data,
    Frame,
    FrameReader,
    FrameWriter,
    Leaving,
    Opened,
    Ping,
    Reset,
)
from tessera.embedded.doors.web_sockets import BROKEN, GOOD_END, WebSocket
from tessera.embedded.refusals import bad_request
from tessera.embedded.resources.parts import inside
from tessera.embedded.serving.answers import Receive, Scope, Send

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
PROTOCOL = "SPDY/3.1+portforward.k8s.io"
CHUNK_BYTES = 32 * 1024
CONNECT_S = 5.0


class _Connection(msgspec.Struct, eq=False):
    """`data` and `errors` are numbers of streams, 0 until they are opened."""

    port: int
    data: int = 0
    errors: int = 0
    writer: asyncio.StreamWriter | None = None
    download: asyncio.Task[None] | None = None


async def forward_over(pod: Frozen, scope: Scope, receive: Receive, send: Send) -> None:
    address = inside(pod, "status").get("podIP")
    if not address:
        raise bad_request(f"pod {pod['metadata']['name']} has no address yet")
    ports = [] if PROTOCOL in scope.get("subprotocols", ()) else read_ports(scope["query_string"])
    socket = await WebSocket.accept(scope, receive, send, _choose_protocol)
    if socket.protocol == PROTOCOL:
        await Forwarding(socket, address, pod["metadata"]["name"]).run()
    else:
        await forward_channels(socket, address, ports)


def _choose_protocol(offered: list[str]) -> str | None:
    return next((protocol for protocol in (PROTOCOL, V4) if protocol in offered), None)


class Forwarding:
    def __init__(self, socket: WebSocket, address: str, pod_name: str) -> None:
        self._socket = socket
        self._address = address
        self._pod_name = pod_name
        self._reader = FrameReader()
        self._writer = FrameWriter()
        self._requests: dict[str, _Connection] = {}
        self._by_stream: dict[int, _Connection] = {}

    async def run(self) -> None:
        """Until the client leaves or cannot be understood."""
        code = GOOD_END
        try:
            async for message in self._socket.messages():
                for frame in self._reader.take(message):
                    await self._take(frame)
        except BrokenFrame as error:
            log.warning("port-forward ended by a frame that cannot be read", pod=self._pod_name, error=str(error))
            code = BROKEN
        finally:
            await self._end_all()
        with suppress(OSError):
            await self._socket.close(code)

    async def _take(self, frame: Frame) -> None:
        match frame:
            case Opened():
                await self._open(frame)
            case Data(stream, data, is_last):
                connection = self._by_stream.get(stream)
                if connection is not None and connection.writer is not None and stream == connection.data:
                    await self._upload(connection.writer, data, is_last=is_last)
            case Reset(stream):
                self._drop(stream)
            case Ping(number):
                await self._socket.send(self._writer.pong(number))
            case Leaving():
                pass  # the WebSocket is closed right after

    async def _open(self, opened: Opened) -> None:
        headers = opened.headers
        kind, port, request = (headers.get(name, "") for name in ("streamtype", "port", "requestid"))
        if kind not in ("data", "error") or not port.isdecimal() or not 0 < int(port) < 65536:
            await self._socket.send(self._writer.refuse(opened.stream))
            return
        connection = self._requests.setdefault(request, _Connection(int(port)))
        if kind == "data":
            connection.data = opened.stream
        else:
            connection.errors = opened.stream
        self._by_stream[opened.stream] = connection
        await self._socket.send(self._writer.accept(opened.stream))
        if connection.data and connection.errors:
            del self._requests[request]
            await self._connect(connection)

    async def _connect(self, connection: _Connection) -> None:
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(self._address, connection.port)
        except OSError as error:
            why = error.strerror or "no answer"
            complaint = f"error forwarding port {connection.port} to pod {self._pod_name}: {why}"
            await self._socket.send(self._writer.data(connection.errors, complaint.encode()))
            await self._finish(connection)
            return
        connection.writer = writer
        connection.download = asyncio.ensure_future(self._download(connection, reader, writer))

    async def _download(
        self, connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """What the pod says, until it says no more."""
        try:
            with suppress(OSError):
                while data := await reader.read(CHUNK_BYTES):
                    await self._socket.send(self._writer.data(connection.data, data))
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await self._finish(connection)

    async def _upload(self, writer: asyncio.StreamWriter, data: bytes, *, is_last: bool) -> None:
        """All wait for a pod that does not read: there is no flow control for one connection alone."""
        with suppress(OSError):
            if data and not writer.is_closing():
                writer.write(data)
                await writer.drain()
            if is_last and not writer.is_closing():
                writer.write_eof()

    async def _finish(self, connection: _Connection) -> None:
        for stream in (connection.data, connection.errors):
            if self._by_stream.pop(stream, None) is not None:
                await self._socket.send(self._writer.data(stream, b"", is_last=True))

    def _drop(self, stream: int) -> None:
        connection = self._by_stream.get(stream)
        if connection is not None and stream == connection.data and connection.download is not None:
            del self._by_stream[stream]
            connection.download.cancel()

    async def _end_all(self) -> None:
        downloads = {one.download for one in self._by_stream.values() if one.download is not None}
        for task in downloads:
            task.cancel()
        await asyncio.gather(*downloads, return_exceptions=True)
