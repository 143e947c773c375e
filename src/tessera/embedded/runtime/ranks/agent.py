"""What mpirun calls in the place of ssh: `tessera-mpi-enter [options of ssh] HOST COMMAND…`.

A worker may come later than its launcher, so this waits for it, for as long as its pod may still come. It ends with the
command's exit code, or with 255 and one sentence, as ssh does.
"""

import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tessera.embedded.runtime.ranks.meeting import STANDARD, AgentSide, Order, meeting_point, new_socket, program_of
from tessera.model.mpi_hosts import (
    BOARD,
    ENTER,
    FAILED,
    HOST,
    HOSTS_FILE,
    JOB,
    RUNNING,
    TOKEN_FILE,
    locations,
    state_file,
)

WITH_VALUE = frozenset("BbcDEeFIiJLlmOopQRSWw")
"""Options of ssh that take a value. None of them means anything here."""
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
FAILED_CODE = 255
LOOK_AGAIN_S, TELL_AGAIN_S = 0.02, 30.0
NOT_YET = "its pod does not run yet"
CLOSED = (
    "its pod runs, but nothing there lets its launcher in; expected a worker without a command, or one that runs sshd"
)


def read_arguments(arguments: list[str]) -> tuple[str, str]:
    """The host, and what to run there. ssh joins the words of a command by spaces, and a shell there reads them."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if len(option) == 2 and option[1] in WITH_VALUE and rest:
            rest.pop(0)
    if len(rest) < 2:
        fail(f"got {arguments}, expected a host and a command: mpirun calls this in the place of ssh")
    return rest[0].rpartition("@")[2].partition(".")[0], " ".join(rest[1:])


def meet(host: str) -> socket.socket:
    """Wait for the worker, unless it has failed or there will be none: a job may become smaller while it waits."""
    address, told_at = meeting_point(os.environ[JOB], host), time.monotonic()
    while True:
        refuse_stranger(host)
        line = new_socket()
        with suppress(ConnectionRefusedError):
            line.connect(address)
            return line
        line.close()
        phase, why = worker_state(host)
        if phase == FAILED:
            fail(f"worker {host} cannot be entered: {why or 'its pod has failed'}; see kubectl describe pod {host}")
        if time.monotonic() - told_at > TELL_AGAIN_S:
            told_at = time.monotonic()
            say(f"still waiting for worker {host}: {why or what_is_missing(phase)}")
        time.sleep(LOOK_AGAIN_S)


def refuse_stranger(host: str) -> None:
    """A host that mpirun was told of by hand may be none of the job's, and nobody would ever come."""
    with suppress(OSError):
        known = Path(os.environ[BOARD], HOSTS_FILE).read_text().split()
        if host not in known:
            fail(f"host {host} cannot be entered: it is no worker of this job, whose workers are {', '.join(known)}")


def worker_state(host: str) -> tuple[str, str]:
    """What the controller says of its pod, and why."""
    with suppress(OSError):
        phase, _, why = Path(os.environ[BOARD], state_file(host)).read_text().partition("\n")
        return phase, why.strip()
    return "", ""


def what_is_missing(phase: str) -> str:
    """Of a worker of which nobody says why it cannot be entered."""
    return CLOSED if phase == RUNNING else NOT_YET


def enter(host: str, command: str) -> int:
    try:
        side = AgentSide(meet(host), Path(os.environ[BOARD], TOKEN_FILE).read_text())
        where = {"PATH": os.environ.get("PATH", ""), **locations(os.environ)}
        side.order(Order(command, where), list(range(STANDARD)))
    except OSError as error:
        fail(f"worker {host} cannot be entered: {error}")

    def pass_on(number: int, _: FrameType | None) -> None:
        with suppress(OSError):
            side.signal(number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    code = side.exit_code()
    if code is None:
        fail(f"worker {host} has ended while `{program_of(command)}` ran there")
    return code


def say(sentence: str) -> None:
    with suppress(OSError):
        os.write(_stderr, f"{ENTER}: {sentence}\n".encode())


def callers_stderr() -> int:
    """Where mpirun itself speaks: what we say is read by it, and no more once it has given up."""
    with suppress(OSError):
        return os.open(f"/proc/{os.getppid()}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    return sys.stderr.fileno()


_stderr = callers_stderr()


def fail(sentence: str) -> NoReturn:
    say(sentence)
    sys.exit(FAILED_CODE)


def main() -> None:
    host, command = read_arguments(sys.argv[1:])
    missing = [name for name in (JOB, BOARD) if not os.environ.get(name)]
    if missing:
        fail(f"{missing[0]} is not set, expected it from the MPIJob: only launchers and workers of one can enter")
    if host in (os.environ.get("HOSTNAME"), os.environ.get(HOST), "localhost"):
        os.execv("/bin/sh", ["/bin/sh", "-c", command])
    sys.exit(enter(host, command))
