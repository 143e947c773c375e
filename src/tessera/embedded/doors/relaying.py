"""Bytes between two connections, both ways, until neither has more."""

import asyncio
from collections.abc import Iterable

from tessera.embedded.doors.backends import Backend

CHUNK_BYTES = 64 * 1024
CONNECT_S = 5.0
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(backends: Iterable[Backend]) -> Peer | None:
    """To the first that accepts."""
    for backend in backends:
        try:
            async with asyncio.timeout(CONNECT_S):
                return await asyncio.open_connection(backend.address, backend.port)
        except OSError:
            continue
    return None


async def relay(one: Peer, other: Peer) -> None:
    """One that has said everything may still be answered."""
    copying = [asyncio.ensure_future(_copy(one[0], other[1])), asyncio.ensure_future(_copy(other[0], one[1]))]
    try:
        await asyncio.wait(copying, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in copying:
            task.cancel()
        await asyncio.gather(*copying, return_exceptions=True)
        for _, writer in (one, other):
            writer.close()  # after what is still to be written


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
