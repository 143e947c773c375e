"""One run of a program under a supervisor of its own: start it, signal it, learn how it ended.

Nothing here waits for a child in the way of `asyncio.subprocess`: the supervisor tells what happens over a pipe, and
the end of that pipe is its own end.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

import tessera
from tessera.embedded.runtime.leftovers import VARIABLE, kill_marked
from tessera.embedded.runtime.namespaces import Shown
from tessera.errors import StartRefused

SUPERVISE = "import sys; sys.path.insert(0, sys.argv[1]); from tessera.embedded.runtime.shim import main; main()"
PACKAGES = str(Path(tessera.__file__).parent.parent)


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, and where. `mark` is what its processes are known by.

    With `spare`, an empty directory, it gets namespaces in which `mounts` are shown; with `join` it gets those of
    another process. Output goes to `log`, or to the descriptors `stdio`, which may be a `terminal`. `process_files` and
    `kill_files` are its control group's.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    mark: str
    hostname: str = ""
    mounts: Sequence[Shown] = ()
    spare: str = ""
    join: int = 0
    log: str = ""
    most_log_bytes: int = 10 * 1024 * 1024
    stdio: Sequence[int] = ()
    terminal: bool = False
    process_files: Sequence[str] = ()
    kill_files: Sequence[str] = ()

    def encode(self) -> bytes:
        marked = {**self.environment, VARIABLE: self.mark}
        document: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(self, environment=marked))
        document["mounts"] = [mount._asdict() for mount in self.mounts]
        return msgspec.json.encode(document) + b"\n"


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """`code` is as a shell has it: 128 and the signal's number where one ended the process."""

    code: int
    signal: int = 0
    at: datetime


class Process:
    """Made by `start`."""

    def __init__(self, pid: int, started_at: datetime, supervisor: "_Supervisor") -> None:
        self.pid = pid
        self.started_at = started_at
        self._supervisor = supervisor
        self._exit = asyncio.ensure_future(self._learn_exit())

    @classmethod
    async def start(cls, launch: Launch) -> "Process":
        """StartRefused with a sentence, when there is no such program or its mounts cannot be made."""
        supervisor = _Supervisor(launch)
        try:
            news = await supervisor.begin(launch)
        except BaseException:
            supervisor.end()
            raise
        if "pid" not in news:
            supervisor.end()
            raise StartRefused(news.get("error", "the container's supervisor ended before it started anything"))
        return cls(news["pid"], _time(news["at_ns"]), supervisor)

    def signal(self, number: int) -> None:
        """To the program alone, as a container runtime does."""
        self._supervisor.tell(f"signal {int(number)}\n")

    def kill(self) -> None:
        """The program and every process that came of it."""
        self._supervisor.tell("kill\n")

    async def wait(self) -> Exit:
        """Until the last of its processes is gone."""
        return await asyncio.shield(self._exit)

    async def stop(self, grace_s: float) -> Exit:
        """Ask it to end, and end it when it has not within its time."""
        self.signal(signal.SIGTERM)
        done, _ = await asyncio.wait([self._exit], timeout=grace_s)
        if not done:
            self.kill()
        return await self.wait()

    async def _learn_exit(self) -> Exit:
        news = await self._supervisor.hear()
        self._supervisor.end()
        if "status" not in news:
            return Exit(code=128 + signal.SIGKILL, signal=signal.SIGKILL, at=datetime.now(UTC))
        code = os.waitstatus_to_exitcode(news["status"])
        number = max(0, -code)
        return Exit(code=128 + number if number else code, signal=number, at=_time(news["at_ns"]))


class _Supervisor:
    """The shim's process, and the two pipes to it."""

    def __init__(self, launch: Launch) -> None:
        self._mark = launch.mark
        self._shim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SUPERVISE, PACKAGES],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=launch.stdio,
            start_new_session=True,
            cwd="/",
            env={VARIABLE: launch.mark},
            bufsize=0,
        )
        assert self._shim.stdin is not None
        assert self._shim.stdout is not None
        self._commands, self._output = self._shim.stdin, self._shim.stdout
        self._reports = asyncio.StreamReader()

    async def begin(self, launch: Launch) -> dict[str, Any]:
        """Hand over what to run; returns what became of it."""
        protocol = asyncio.StreamReaderProtocol(self._reports)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, self._output)
        # It reads all of it before anything else, so this waits no longer than its interpreter takes to start.
        await asyncio.to_thread(_write_all, self._commands.fileno(), launch.encode())
        return await self.hear()

    def tell(self, command: str) -> None:
        if not self._commands.closed:
            with suppress(BrokenPipeError):
                self._commands.write(command.encode())

    async def hear(self) -> dict[str, Any]:
        """The next report; nothing, when the supervisor is gone."""
        line = await self._reports.readline()
        return msgspec.json.decode(line) if line else {}

    def end(self) -> None:
        """It has said all it had to say. Where it was killed, what it watched over goes as well."""
        self._commands.close()
        if self._shim.wait() != 0:
            kill_marked(self._mark)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _time(at_ns: int) -> datetime:
    return datetime.fromtimestamp(at_ns / 1e9, UTC)
