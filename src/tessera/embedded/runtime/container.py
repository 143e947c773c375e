"""The life of one container: started, attended to, started again, stopped."""

import asyncio
import secrets
import signal
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.attending import Attendant
from tessera.embedded.runtime.consoles import Console, has_console, open_console
from tessera.embedded.runtime.exec import run_command
from tessera.embedded.runtime.images import Absent, Program
from tessera.embedded.runtime.last_words import read_last_words
from tessera.embedded.runtime.log_files import OLDER
from tessera.embedded.runtime.parts import listed
from tessera.embedded.runtime.probes import Checker
from tessera.embedded.runtime.process import Launch, Process
from tessera.embedded.runtime.restarts import should_restart
from tessera.embedded.runtime.sources import Event
from tessera.embedded.runtime.starting import Assembled, assemble
from tessera.embedded.runtime.states import (
    CREATING,
    INITIALIZING,
    Record,
    Running,
    Terminated,
    Waiting,
    ended,
    read_record,
)
from tessera.embedded.runtime.surroundings import Surroundings
from tessera.embedded.runtime.volumes import Volumes
from tessera.errors import StartRefused, TesseraError

KEPT_LOGS = 2
NOT_STARTED = 128
"""The exit code of a container whose program could not be run, as container runtimes have it."""


class _Run(msgspec.Struct, frozen=True):
    process: Process
    launch: Launch
    attendant: Attendant
    console: Console | None


class Container:
    """`policy` says whether it is started again when it ends, `told` what was last told of it."""

    def __init__(self, around: Surroundings, volumes: Volumes, spec: Frozen, told: Frozen | None, policy: str) -> None:
        self._around = around
        self._volumes = volumes
        self._spec = spec
        self._policy = policy
        waiting = INITIALIZING if listed(around.pod, "spec", "initContainers") else CREATING
        self.record: Record = read_record(spec, told, datetime.now(UTC), waiting=waiting)
        self._crashes = 0
        self._run: _Run | None = None
        self._stopping = asyncio.Event()
        self.has_started = asyncio.Event()
        """Once it ran and passed its startup probe."""
        self.run_over = asyncio.Event()
        """Set when the present run is over; each run has its own."""
        self.run_over.set()

    @property
    def name(self) -> str:
        return self._spec["name"]

    @property
    def console(self) -> Console | None:
        """Of the present run, if it has one."""
        return self._run.console if self._run else None

    def log_path(self, *, previous: bool = False) -> Path:
        return self._numbered_log(self.record.restarts - (1 if previous else 0))

    def exec_launch(self, command: Sequence[str]) -> Launch:
        """How a command is run beside it. StartRefused, if it does not run."""
        if self._run is None:
            raise StartRefused(f"container {self.name} is not running, expected one that is")
        launch = self._run.launch
        joins = self._run.process.pid if launch.spare else 0
        return msgspec.structs.replace(launch, argv=command, join=joins, spare="", mounts=(), log="", kill_files=())

    async def run(self) -> None:
        """Until it has ended for good or was stopped."""
        while not self._stopping.is_set():
            if isinstance(self.record.state, Terminated):
                if not should_restart(self._policy, self.record.state.exit_code):
                    return
                await self._wait_for_restart(self.record.state)
                if self._stopping.is_set():
                    return
            program = self._around.machine.images.program_of(self._spec)
            if isinstance(program, Absent):
                await self._wait_for_image(program)
            else:
                await self._start(program)

    async def stop(self, grace_s: float) -> None:
        """Ask, wait, kill. What waits to be started is not started any more."""
        self._stopping.set()
        run = self._run
        if run is None:
            return
        clock = asyncio.get_running_loop().time
        deadline_s = clock() + grace_s
        self._tell("Normal", "Killing", f"Stopping container {self.name}")
        if grace_s > 0:
            await run.attendant.run_hook("preStop", grace_s)
        await run.process.stop(max(0.0, deadline_s - clock()))
        await self.run_over.wait()

    async def _start(self, program: Program) -> None:
        before = self.record.state if isinstance(self.record.state, Terminated) else self.record.last
        number = self.record.restarts + (1 if before else 0)
        try:
            assembled = await assemble(self._around, self._volumes, self._spec, program, self._numbered_log(number))
        except (TesseraError, OSError) as error:
            await self._wait_with(Waiting("CreateContainerConfigError", str(error)))
            return
        forgotten = self._numbered_log(number - KEPT_LOGS)
        for path in (forgotten, forgotten.with_name(forgotten.name + OLDER)):
            path.unlink(missing_ok=True)
        self._tell("Normal", "Created", f"Container {self.name}: {program.note}")
        identity = f"tessera://{secrets.token_hex(32)}"
        try:
            console = await open_console(assembled.launch, self._spec) if has_console(self._spec) else None
            process = console.process if console else await Process.start(assembled.launch)
        except StartRefused as error:
            assembled.group.remove()
            self._tell("Warning", "Failed", f"Error: {error}")
            failed = Terminated(
                exit_code=NOT_STARTED, reason="StartError", message=str(error), finished_at=datetime.now(UTC)
            )
            self._crashes = self._around.machine.settings.restarts.count(self._crashes, failed)
            self._change(restarts=number, last=before, container_id=identity, state=failed)
            return
        self._change(restarts=number, last=before, container_id=identity, state=Running(process.started_at))
        await self._attend(process, console, assembled)

    async def _attend(self, process: Process, console: Console | None, assembled: Assembled) -> None:
        """From its start to its end."""
        attendant = Attendant(
            self._spec,
            Checker(self._spec, self._around.place.pod_address, self._run_command),
            tell=self._around.tell,
            on_started=self._note_start,
            on_ready=lambda ready: self._change(ready=ready),
            kill=lambda: self._end_early(process),
        )
        self._run = _Run(process, assembled.launch, attendant, console)
        self.run_over = asyncio.Event()
        self._tell("Normal", "Started", f"Container {self.name} started")
        attending = asyncio.ensure_future(attendant.attend())
        if self._stopping.is_set():  # while it started, when there was nothing yet to stop
            process.kill()
        try:
            exited = await process.wait()
        finally:
            attending.cancel()
            process.kill()
            await asyncio.gather(attending, process.wait(), return_exceptions=True)
            if console is not None:
                await console.close()
        self._run = None
        words = await read_last_words(assembled.last_words, self.log_path(), self._spec, exited.code)
        state = ended(exited, process.started_at, out_of_memory=assembled.group.was_out_of_memory(), message=words)
        assembled.group.remove()
        self._crashes = self._around.machine.settings.restarts.count(self._crashes, state)
        self._change(state=state, ready=False, started=False)
        self.run_over.set()

    async def _run_command(self, command: Sequence[str], timeout_s: float) -> tuple[int, str]:
        return await run_command(self.exec_launch(command), timeout_s)

    def _end_early(self, process: Process) -> None:
        """It has its time to end also when a probe found it ill."""
        grace_s = self._around.pod["spec"].get("terminationGracePeriodSeconds", 30)
        asyncio.get_running_loop().call_later(grace_s, process.kill)
        process.signal(signal.SIGTERM)

    def _note_start(self) -> None:
        self._change(started=True)
        self.has_started.set()

    async def _wait_for_restart(self, state: Terminated) -> None:
        wait_s = self._around.machine.settings.restarts.wait_s(self._crashes)
        if wait_s:
            metadata = self._around.pod["metadata"]
            pod = f"{metadata['name']}_{metadata['namespace']}({self._around.uid})"
            message = f"back-off {wait_s:g}s restarting failed container={self.name} pod={pod}"
            self._tell("Warning", "BackOff", f"Back-off restarting failed container {self.name}")
            self._change(state=Waiting("CrashLoopBackOff", message), last=state)
            await self._pause(wait_s)

    async def _wait_for_image(self, absent: Absent) -> None:
        was_told = isinstance(self.record.state, Waiting) and self.record.state.reason in (absent.reason, absent.later)
        reason = absent.later if was_told else absent.reason
        await self._wait_with(Waiting(reason, absent.message))

    async def _wait_with(self, waiting: Waiting) -> None:
        if self.record.state != waiting:
            self._tell("Warning", "Failed", f"Error: {waiting.reason}: {waiting.message}")
            before = self.record.state if isinstance(self.record.state, Terminated) else self.record.last
            self._change(state=waiting, last=before)
        await self._pause(self._around.machine.settings.retry_s)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    def _numbered_log(self, number: int) -> Path:
        return self._around.directory / "containers" / self.name / f"{number}.log"

    def _change(self, **facts: Any) -> None:
        self.record = msgspec.structs.replace(self.record, **facts)
        self._around.changed()

    def _tell(self, level: str, reason: str, message: str) -> None:
        self._around.tell(Event(level, reason, message))
