"""Tells a process its number on the node, which it cannot know by itself: in a container it has another one.

The kernel says who is at the other end of a Unix socket. The answer is one line, `pid 1234`; there is none where this
agent does not see the node's processes. The directory of the socket is mounted into containers, so that those that run
find a new agent too.
"""

import asyncio
import os
import socket
import struct
from pathlib import Path

import structlog

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
CREDENTIALS = struct.Struct("=iII")
ANYBODY = 0o666


async def serve_pids(path: Path) -> None:
    """Until cancelled. Nothing depends on it, so that it cannot be had is said and waited out."""
    try:
        server = await _listen(path)
    except OSError as error:
        log.warning("processes are not told their numbers", path=str(path), error=str(error))
        await asyncio.Event().wait()
        return
    async with server:
        await server.serve_forever()


async def _listen(path: Path) -> asyncio.Server:
    """The socket takes the place of a former agent's in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # A path of the socket may be longer than a socket's address; that of its directory's descriptor is not.
        listening.bind(f"/proc/self/fd/{directory}/{fresh.name}")
        fresh.chmod(ANYBODY)
        fresh.replace(path)
    except BaseException:
        listening.close()
        raise
    finally:
        os.close(directory)
    return await asyncio.start_unix_server(_answer, sock=listening)


async def _answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    pid, _, _ = CREDENTIALS.unpack(peer)
    if pid:
        writer.write(f"pid {pid}\n".encode())
    writer.close()
