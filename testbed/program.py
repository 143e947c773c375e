"""A long-running program of a machine: started, watched, paused, killed and started again by tests."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from testbed.requirements import TestbedFailed

T = TypeVar("T")
POLL_S = 0.02
LAST_LINES = 12


class Program:
    """`command` begins with nsenter, whose only child is the program itself."""

    def __init__(self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._environment = os.environ | environment
        self._process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id as the host sees it."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        found = self.until(lambda: children.read_text().split(), "started")
        return int(found[0])

    def until(self, condition: Callable[[], T], what: str, *, timeout_s: float = 60) -> T:
        """Wait for the condition to hold; fail at once, with the end of the log, if the program dies first."""
        deadline = time.monotonic() + timeout_s
        while True:
            if value := condition():
                return value
            if not self.running:
                raise TestbedFailed(f"{self.name} ended before it was {what}; its log ends:\n{self.last_words()}")
            if time.monotonic() > deadline:
                raise TestbedFailed(
                    f"{self.name} was not {what} in {timeout_s:g} s; its log ends:\n{self.last_words()}"
                )
            time.sleep(POLL_S)

    def last_words(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LAST_LINES:])

    def pause(self) -> None:
        """nsenter stops after its child. Until then it may still let the child go on, after an earlier `resume`."""
        pid = self.pid

        def is_paused() -> bool:
            os.kill(pid, signal.SIGSTOP)
            return _is_stopped(pid) and _is_stopped(self._process.pid)

        self.until(is_paused, "paused")

    def resume(self) -> None:
        """nsenter stops when its child is stopped, and does not go on by itself."""
        if self.running:
            for pid in (self.pid, self._process.pid):
                os.kill(pid, signal.SIGCONT)

    def stop(self, *, timeout_s: float = 30) -> None:
        """End it as a service manager would."""
        self._end(signal.SIGTERM, timeout_s)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL, 10)

    def _end(self, number: signal.Signals, timeout_s: float) -> None:
        if not self.running:
            return
        try:
            self.resume()
            os.kill(self.pid, number)
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self._process.wait(10)
        except (TestbedFailed, ProcessLookupError, FileNotFoundError):
            self._process.wait(10)  # it has just ended by itself

    def wait(self) -> None:
        """Until it has ended, which somebody else must see to."""
        self._process.wait()

    def restart(self) -> None:
        """Start it again with the same command; it must have ended."""
        self.stop()
        self._process = self._spawn()


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
