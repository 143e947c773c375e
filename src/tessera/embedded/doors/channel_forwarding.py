"""Port-forward as clients without SPDY speak it: one connection for each port that the query names, in one WebSocket.

The first byte of a message says its channel. Each port has two, one for its bytes and one for complaints, and both are
opened by us with the port's number.
"""

import asyncio
import struct
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import parse_qsl

from tessera.embedded.doors.backends import Backend
from tessera.embedded.doors.relaying import CHUNK_BYTES, Peer, connect
from tessera.embedded.doors.web_sockets import WebSocket
from tessera.embedded.refusals import bad_request

MOST_PORTS = 127
"""A channel is one byte."""


def read_ports(query: bytes) -> list[int]:
    """As `ports=80&ports=81` or `ports=80,81`."""
    values = [value for name, value in parse_qsl(query.decode("latin-1")) if name == "ports"]
    texts = [text.strip() for value in values for text in value.split(",")]
    if not texts or len(texts) > MOST_PORTS or not all(_is_port(text) for text in texts):
        raise bad_request(f'ports is "{",".join(texts)}", expected numbers of ports such as 80,8080')
    return [int(text) for text in texts]


def _is_port(text: str) -> bool:
    return text.isdecimal() and 0 < int(text) < 65536


async def forward_channels(socket: WebSocket, address: str, ports: Sequence[int]) -> None:
    """Until the client leaves or no port has more to say."""
    peers: dict[int, Peer] = {}
    for number, port in enumerate(ports):
        for channel in (2 * number, 2 * number + 1):
            await socket.send(struct.pack("<BH", channel, port))
        peer = await connect([Backend(address, port)])
        if peer is None:
            await socket.send(_message(2 * number + 1, f"error forwarding port {port}: nobody listens there".encode()))
        else:
            peers[2 * number] = peer
    uploading = asyncio.ensure_future(_upload(socket, peers))
    downloading = asyncio.ensure_future(_download_all(socket, peers))
    try:
        await asyncio.wait({uploading, downloading}, return_when=asyncio.FIRST_COMPLETED)
        with suppress(OSError):
            await socket.close()
    finally:
        for _, writer in peers.values():
            writer.transport.abort()
        for task in (uploading, downloading):
            task.cancel()
        await asyncio.gather(uploading, downloading, return_exceptions=True)


async def _upload(socket: WebSocket, peers: dict[int, Peer]) -> None:
    async for message in socket.messages():
        peer = peers.get(message[0]) if message else None
        if peer is not None and not peer[1].is_closing():
            with suppress(OSError):
                peer[1].write(message[1:])
                await peer[1].drain()


async def _download_all(socket: WebSocket, peers: dict[int, Peer]) -> None:
    await asyncio.gather(*(_download(socket, channel, reader) for channel, (reader, _) in peers.items()))


async def _download(socket: WebSocket, channel: int, reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            await socket.send(_message(channel, data))


def _message(channel: int, data: bytes) -> bytes:
    return bytes((channel,)) + data
