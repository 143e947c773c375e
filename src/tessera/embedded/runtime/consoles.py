"""The console of a container that takes input or has a terminal: what it prints goes to its log and to all who look on.

Other containers need none: their supervisors write the log, and who looks on reads it. A log has whole lines, though,
and whoever types wants to see a prompt before its line is complete. So the output comes through the engine here.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import msgspec
import structlog

from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.exec import Session, open_session
from tessera.embedded.runtime.log_files import LineStamper, LogFile
from tessera.embedded.runtime.process import Launch

Viewer = Callable[[str, bytes], Awaitable[None]]
"""Is shown a piece of `stdout` or `stderr`. Raises OSError, if nobody looks any more."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
MOST_VIEWING_S = 10.0
LAST_OUTPUT_S = 1.0
"""For output that a process handed to somebody outside the container, who does not end with it."""


def has_console(spec: Frozen) -> bool:
    return bool(spec.get("stdin") or spec.get("tty"))


async def open_console(launch: Launch, spec: Frozen) -> "Console":
    """Start the container's program. StartRefused, if that cannot be done."""
    terminal = bool(spec.get("tty"))
    session = await open_session(
        msgspec.structs.replace(launch, log=""), stdin=bool(spec.get("stdin")), terminal=terminal
    )
    return Console(session, LogFile(launch.log, launch.most_log_bytes), spec)


class Console:
    """Made by `open_console`. Whoever looks on slowly holds up the container, as anywhere."""

    def __init__(self, session: Session, log: LogFile, spec: Frozen) -> None:
        self.process = session.process
        self._session = session
        self._log = log
        self._takes_input = bool(spec.get("stdin"))
        self.ends_with_its_first = bool(spec.get("stdinOnce")) and not spec.get("tty")
        """Whether its input ends with that of the first who attached; otherwise it stays open for the next."""
        self._viewers: set[Viewer] = set()
        copying = (self._copy("stdout", session.stdout), self._copy("stderr", session.stderr))
        self._copied = asyncio.gather(*copying)

    def show_to(self, viewer: Viewer) -> None:
        """From now on."""
        self._viewers.add(viewer)

    def leave(self, viewer: Viewer) -> None:
        self._viewers.discard(viewer)

    def send(self, data: bytes) -> None:
        if self._takes_input:
            self._session.send(data)

    def end_input(self) -> None:
        if self._takes_input:
            self._session.end_input()

    def resize(self, rows: int, columns: int) -> None:
        self._session.resize(rows, columns)

    async def ended(self) -> None:
        """Until it prints nothing more."""
        await asyncio.wait([self._copied])

    async def close(self) -> None:
        """Its program has ended: keep the last it said."""
        await asyncio.wait([self._copied], timeout=LAST_OUTPUT_S)
        self._copied.cancel()
        await asyncio.gather(self._copied, return_exceptions=True)
        await self._session.wait()
        self._log.close()

    async def _copy(self, name: str, printed: AsyncIterator[bytes]) -> None:
        stamper = LineStamper(name)
        async for piece in printed:
            self._keep(stamper.take(piece))
            for viewer in list(self._viewers):
                try:
                    async with asyncio.timeout(MOST_VIEWING_S):
                        await viewer(name, piece)
                except Exception as error:  # whatever befalls who looks on, the container goes on
                    log.info("console left", error=repr(error))
                    self.leave(viewer)
        self._keep(stamper.end())

    def _keep(self, records: bytes) -> None:
        with suppress(OSError):  # a full disk costs the log, never the container
            self._log.write(records)
