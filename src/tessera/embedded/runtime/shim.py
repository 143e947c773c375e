"""The supervisor of one container: starts its process, keeps its log, and lets nothing of it survive.

The engine holds the other end of our standard input. When that ends, the engine is gone, however it went, and so is the
container. We adopt every process whose parent ended, so killing our children until there are none ends the whole tree,
whatever it did to hide. The container's own process dies with us should we be killed. What a killed shim would leave
of the rest carries a mark in its environment, by which `leftovers` finds it.

In:  one line of JSON, what to run (`process.Launch`); then lines `signal N` and `kill`.
Out: one line of JSON when it runs (`pid`, `at_ns`) or could not be started (`error`), one when it ended (`status`,
     `at_ns`).
"""

import fcntl
import json
import os
import resource
import selectors
import signal
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from tessera.embedded.runtime import kernel, namespaces
from tessera.embedded.runtime.log_files import LineStamper, LogFile
from tessera.embedded.runtime.namespaces import Shown

CONTROL, REPORT = 0, 1
READ_AT_ONCE = 64 * 1024


class Shim:
    def __init__(self, launch: dict[str, Any], rest: bytes) -> None:
        self._launch = launch
        self._commands = rest
        self._selector = selectors.DefaultSelector()
        self._killers = [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in launch["kill_files"]]
        self._log = LogFile(launch["log"], launch["most_log_bytes"]) if launch["log"] else None
        self._main = 0
        self._status: int | None = None

    def run(self) -> None:
        kernel.adopt_orphans()
        woken, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _wake)
        streams = self._start()
        report({"pid": self._main, "at_ns": time.time_ns()})
        self._selector.register(woken, selectors.EVENT_READ, lambda: self._reap(woken))
        self._selector.register(CONTROL, selectors.EVENT_READ, self._obey)
        self._reap(None)
        while self._status is None:
            for key, _ in self._selector.select():
                key.data()
        ended_at_ns = time.time_ns()
        self.kill_all()
        self._drain(streams)
        report({"status": self._status, "at_ns": ended_at_ns})

    def _start(self) -> list[int]:
        """Returns where its output can be read, where that is ours to keep."""
        if self._log is None:
            self._main = spawn(self._launch, self._launch["stdio"])
            for descriptor in set(self._launch["stdio"]):
                os.close(descriptor)
            return []
        streams: list[int] = []
        stdio = [os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)]
        for name in ("stdout", "stderr"):
            readable, writable = os.pipe2(os.O_CLOEXEC)
            stdio.append(writable)
            streams.append(readable)
            self._selector.register(readable, selectors.EVENT_READ, self._copier(readable, name))
        self._main = spawn(self._launch, stdio)
        for descriptor in stdio:
            os.close(descriptor)
        return streams

    def _copier(self, stream: int, name: str) -> Callable[[], None]:
        stamper = LineStamper(name)

        def copy() -> None:
            assert self._log is not None
            data = os.read(stream, READ_AT_ONCE)
            with suppress(OSError):  # a full disk costs the log, never the container
                self._log.write(stamper.take(data) if data else stamper.end())
            if not data:
                self._selector.unregister(stream)
                os.close(stream)

        return copy

    def _drain(self, streams: list[int]) -> None:
        """Nobody writes any more, unless the output was handed to a process that is not of this container."""
        for stream in streams:
            key = self._selector.get_map().get(stream)
            while key is not None and self._selector.get_map().get(stream) is key:
                os.set_blocking(stream, False)
                try:
                    key.data()
                except BlockingIOError:
                    break

    def _obey(self) -> None:
        received = os.read(CONTROL, 4096)
        if not received:
            self.kill_all()
            os._exit(0)
        *lines, self._commands = (self._commands + received).split(b"\n")
        for line in lines:
            match line.split():
                case [b"signal", number] if self._status is None:
                    os.kill(self._main, int(number))
                case [b"kill"]:
                    self.kill_all()
                case _:
                    pass

    def _reap(self, woken: int | None) -> None:
        if woken is not None:
            os.read(woken, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._note(pid, status)

    def kill_all(self) -> None:
        for killer in self._killers:
            os.write(killer, b"1")
        while children := list_children():
            for child in children:
                os.kill(child, signal.SIGKILL)
            self._note(*os.waitpid(-1, 0))

    def _note(self, pid: int, status: int) -> None:
        if pid == self._main:
            self._status = status


def _wake(number: int, frame: FrameType | None) -> None:
    """A signal that is handled interrupts; what it means is found out by waiting for children."""


def spawn(launch: dict[str, Any], stdio: list[int]) -> int:
    """The pid of a process that runs the launch's program; reports and ends when it cannot be started."""
    failed, failing = os.pipe2(os.O_CLOEXEC)
    shim = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            become(launch, stdio, shim)
        except BaseException as error:
            os.write(failing, explain(launch, error).encode())
            os._exit(127)
    os.close(failing)
    with open(failed, "rb") as reason:
        why = reason.read().decode()
    if why:
        os.waitpid(pid, 0)
        report({"error": why})
        os._exit(0)
    return pid


def become(launch: dict[str, Any], stdio: list[int], shim: int) -> NoReturn:
    os.setsid()
    for path in launch["process_files"]:
        with open(path, "w") as file:
            file.write("0")
    for target, descriptor in enumerate(stdio):
        # None of them is below 3, so nothing is overwritten that is still needed.
        os.dup2(descriptor, target)
    if launch["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if launch["join"]:
        namespaces.join(launch["join"])
    elif launch["spare"]:
        namespaces.enter(launch["hostname"])
        namespaces.show([Shown(**mount) for mount in launch["mounts"]], launch["spare"])
    os.chdir(launch["directory"])
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != shim:
        os._exit(0)
    os.execvpe(launch["argv"][0], launch["argv"], launch["environment"])


def explain(launch: dict[str, Any], error: BaseException) -> str:
    program = launch["argv"][0]
    if isinstance(error, FileNotFoundError) and _names(error.filename, program):
        return (
            f'"{program}": no such program on this machine, expected it in $PATH or as a path; nothing is pulled,'
            " so install it here or give the container another command"
        )
    if isinstance(error, FileNotFoundError) and error.filename == launch["directory"]:
        return f"working directory {launch['directory']} does not exist on this machine"
    return f'"{program}" cannot be started: {error}'


def _names(path: str | bytes | None, program: str) -> bool:
    return path is not None and os.path.basename(os.fsdecode(path)) == os.path.basename(program)


def list_children() -> list[int]:
    """Whoever the kernel says is our child now, also those that it gave to us."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


def report(news: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):
        os.write(REPORT, json.dumps(news).encode() + b"\n")


def main() -> None:
    received = b""
    while b"\n" not in received:
        data = os.read(CONTROL, READ_AT_ONCE)
        if not data:
            return
        received += data
    line, rest = received.split(b"\n", 1)
    launch = json.loads(line)
    for descriptor in launch["stdio"]:
        os.set_inheritable(descriptor, False)
    shim = Shim(launch, rest)
    try:
        shim.run()
    finally:
        shim.kill_all()
