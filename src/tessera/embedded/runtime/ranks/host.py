"""What a worker runs in the place of sshd: it lets the job's own launcher in, and starts what it brings.

What is started stays when its visit is over, as with sshd: mpirun's daemons leave at once and work on. A visitor who
goes without waiting takes what it started along. Which ranks came of it is written to the job's board.
"""

import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tessera.embedded.runtime import kernel
from tessera.embedded.runtime.ranks.meeting import HostSide, Order, meeting_point, new_socket, program_of
from tessera.embedded.runtime.ranks.seeing import Seen
from tessera.model.mpi_hosts import BOARD, HOST, JOB, TOKEN_FILE, ranks_file

MOST_WAITING = 128
GRACE_S = 5.0
FOLDERS = ("PATH", "LD_LIBRARY_PATH")
"""Variables that name several places: what one worker has of its own does not replace the launcher's."""


class Visit:
    """Somebody at the door, and later what runs for them."""

    def __init__(self, side: HostSide) -> None:
        self.side = side
        self.pid = 0

    def start(self, order: Order, descriptors: list[int]) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            _become(order, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


class Host:
    def __init__(self, listening: socket.socket, token: str, ranks: Path) -> None:
        self._listening = listening
        self._token = token
        self._seen = Seen(ranks)
        self._selector = selectors.DefaultSelector()
        self._visits: dict[int, Visit] = {}
        self._at_the_door = deque[Visit]()
        self._kill_at: dict[int, float] = {}

    def run(self) -> NoReturn:
        woken, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _wake)
        self._selector.register(woken, selectors.EVENT_READ, lambda: self._reap(woken))
        self._selector.register(self._listening, selectors.EVENT_READ, self._open)
        while True:
            for key, _ in self._selector.select(self._wait_s()):
                if self._selector.get_map().get(key.fd) is key:  # else what came before it has ended it
                    key.data()
            self._seen.look()
            self._kill_late()

    def _wait_s(self) -> float | None:
        waits = [self._seen.wait_s(), *(max(0.0, at - time.monotonic()) for at in self._kill_at.values())]
        return min((wait for wait in waits if wait is not None), default=None)

    def _open(self) -> None:
        line, _ = self._listening.accept()
        visit = Visit(HostSide(line, self._token))
        self._selector.register(line, selectors.EVENT_READ, lambda: self._hear(visit))
        self._at_the_door.append(visit)
        if len(self._at_the_door) > MOST_WAITING:  # anybody may knock, and an agent does not stand there for long
            self._close(self._at_the_door[0])

    def _hear(self, visit: Visit) -> None:
        """A stranger is shown out without a word of what it did wrong."""
        try:
            if visit.pid:
                self._obey(visit)
                return
            ordered = visit.side.take()
        except (OSError, ValueError) as error:
            if isinstance(error, PermissionError):
                say("somebody who does not know the job's token was not let in")
            self._close(visit)
            return
        if ordered is not None:
            order, descriptors = ordered
            program = program_of(order.command)
            say(f"entered to run {program}")
            self._at_the_door.remove(visit)
            visit.start(order, descriptors)
            self._visits[visit.pid] = visit
            self._seen.expect(program)

    def _obey(self, visit: Visit) -> None:
        number = visit.side.signal()
        if number is not None:
            visit.signal(number)
            return
        visit.signal(signal.SIGTERM)
        self._kill_at[visit.pid] = time.monotonic() + GRACE_S
        self._close(visit)

    def _close(self, visit: Visit) -> None:
        if visit in self._at_the_door:
            self._at_the_door.remove(visit)
        self._selector.unregister(visit.side.line)
        visit.side.line.close()

    def _reap(self, woken: int) -> None:
        os.read(woken, 4096)
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                self._kill_at.pop(pid, None)
                if (visit := self._visits.pop(pid, None)) is not None:
                    self._end(visit, status)

    def _end(self, visit: Visit, status: int) -> None:
        if visit.side.line.fileno() < 0:
            return
        code = os.waitstatus_to_exitcode(status)
        with suppress(OSError):
            visit.side.end(code if code >= 0 else 128 - code)
        self._close(visit)

    def _kill_late(self) -> None:
        for pid, at in list(self._kill_at.items()):
            if time.monotonic() >= at:
                del self._kill_at[pid]
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)


def _become(order: Order, descriptors: list[int]) -> NoReturn:
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        os.execve("/bin/sh", ["/bin/sh", "-c", order.command], furnish(dict(os.environ), order.environment))
    finally:
        os._exit(127)


def furnish(own: dict[str, str], brought: dict[str, str]) -> dict[str, str]:
    """The worker's own variables. What they do not say of where MPI lies is taken from the launcher."""
    joined = {name: join_folders(own.get(name, ""), brought[name]) for name in FOLDERS if name in brought}
    return {**brought, **own, **joined}


def join_folders(own: str, brought: str) -> str:
    return ":".join(dict.fromkeys(filter(None, (own + ":" + brought).split(":"))))


def _wake(number: int, frame: FrameType | None) -> None:
    """A signal that is handled interrupts; what it means is found out by waiting for children."""


def _leave(_: int, __: FrameType | None) -> None:
    """What was started here is ended by the supervisor of the container."""
    os._exit(0)


def say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def main() -> None:
    name = os.environ[HOST]
    listening = new_socket()
    listening.bind(meeting_point(os.environ[JOB], name))
    listening.listen(MOST_WAITING)
    signal.signal(signal.SIGTERM, _leave)
    kernel.adopt_orphans()
    say(f"worker {name} can be entered by its launcher")
    board = Path(os.environ[BOARD])
    Host(listening, (board / TOKEN_FILE).read_text(), board / ranks_file(name)).run()
