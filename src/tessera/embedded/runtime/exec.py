"""A command in the context of a running container: its variables, working directory, namespaces and control group."""

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec

from tessera.embedded.runtime.inputs import Input, TerminalInput
from tessera.embedded.runtime.process import Launch, Process

READ_AT_ONCE = 64 * 1024
USUAL_TERMINAL = "xterm"
"""What container runtimes say of a terminal; kubectl does not tell which one it has."""


class Session:
    """Made by `open_session`. Output must be read, or the command waits. With a terminal, all of it is `stdout`."""

    def __init__(self, process: Process, master: int | None, stdin: Input | None) -> None:
        self.process = process
        self._master = master
        self._stdin = stdin
        self.stdout: AsyncIterator[bytes] = _nothing()
        self.stderr: AsyncIterator[bytes] = _nothing()

    def send(self, data: bytes) -> None:
        if self._stdin is not None:
            self._stdin.write(data)

    def end_input(self) -> None:
        if self._stdin is None:
            return
        if self._master is None:
            self._stdin.close()
        else:
            self._stdin.write(b"\x04")

    def resize(self, rows: int, columns: int) -> None:
        if self._master is not None:
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def wait(self) -> int:
        """The exit code."""
        exited = await self.process.wait()
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.abort()
        return exited.code

    def kill(self) -> None:
        self.process.kill()


async def open_session(launch: Launch, *, stdin: bool = False, terminal: bool = False) -> Session:
    """StartRefused, if the command cannot be started. `launch` says all but where its input and output go."""
    return await (_open_terminal(launch) if terminal else _open_pipes(launch, stdin))


async def run_command(launch: Launch, timeout_s: float) -> tuple[int, str]:
    """Its exit code and what it printed; TimeoutError, and nothing of it is left, if it takes longer."""
    session = await open_session(launch)
    try:
        async with asyncio.timeout(timeout_s):
            printed, complaints, code = await asyncio.gather(
                _join(session.stdout), _join(session.stderr), session.wait()
            )
    finally:
        session.kill()
    return code, (printed + complaints).decode(errors="replace")


async def _open_pipes(launch: Launch, stdin: bool) -> Session:
    given, sends = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)
    (printed, prints), (complained, complains) = os.pipe(), os.pipe()
    theirs = (given, prints, complains)
    try:
        process = await Process.start(msgspec.structs.replace(launch, stdio=theirs))
    except BaseException:
        for descriptor in (printed, complained, *(() if sends is None else (sends,))):
            os.close(descriptor)
        raise
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    session = Session(process, None, None if sends is None else await _writer(sends))
    session.stdout, session.stderr = await _reader(printed), await _reader(complained)
    return session


async def _open_terminal(launch: Launch) -> Session:
    master, slave = os.openpty()
    try:
        environment = {"TERM": USUAL_TERMINAL, **launch.environment}
        shown = msgspec.structs.replace(launch, stdio=(slave, slave, slave), terminal=True, environment=environment)
        process = await Process.start(shown)
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    session = Session(process, master, TerminalInput(os.dup(master)))
    session.stdout = await _reader(master)
    return session


async def _writer(descriptor: int) -> asyncio.WriteTransport:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(descriptor, "wb", 0))
    return transport


async def _reader(descriptor: int) -> AsyncIterator[bytes]:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(reader)
    await loop.connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb", 0))
    return _chunks(reader)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    # A terminal whose last program ended cannot be read: that is its end.
    with suppress(OSError):
        while data := await reader.read(READ_AT_ONCE):
            yield data


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


async def _join(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])
