"""One machine of the testbed: namespaces of its own, and programs started in them.

Its first process (`init`) holds everything together: when this object, or the process it lives in, goes away, the
machine's programs, mounts, network and control groups go too. Files stay under `directory` until they are removed.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed import init, network
from testbed.network import Addresses
from testbed.program import Program
from testbed.requirements import TestbedFailed, require
from testbed.slots import take_slot

NAMESPACES = ("--net", "--mount", "--pid", "--uts", "--ipc")


class Machine:
    def __init__(self, name: str = "node-1") -> None:
        require()
        self.name = name
        self._slot = take_slot()
        self.addresses = Addresses(self._slot.number)
        self.cgroup = f"tessera-testbed-{self._slot.number}"
        self.directory = Path(tempfile.gettempdir()) / self.cgroup
        self.logs = self.directory / "logs"
        self.programs: dict[str, Program] = {}
        self._clear()
        try:
            self._init = self._boot()
        except BaseException:
            self._slot.release()
            raise

    def _clear(self) -> None:
        """Remove what the slot's last holder left, if it could not do so itself."""
        init.remove_control_groups(self.cgroup)
        network.disconnect(self.addresses)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.logs.mkdir(parents=True, exist_ok=True)

    def _boot(self) -> subprocess.Popen[str]:
        command = ["unshare", *NAMESPACES, "--fork", "--kill-child=SIGKILL", "--mount-proc", "--propagation=private"]
        command += ["--", sys.executable, "-I", init.__file__, str(self.directory), self.name, self.cgroup]
        with (self.logs / "init.log").open("w") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        assert process.stdout
        with process.stdout as answer:
            is_up = answer.readline() == "up\n"
        if not is_up:
            process.communicate()
            reason = (self.logs / "init.log").read_text().strip().splitlines()[-1:]
            raise TestbedFailed(f"machine {self.cgroup} did not come up: {' '.join(reason)}")
        self._pid = _only_child(process.pid)
        network.connect(self.addresses, self._pid)
        return process

    @property
    def running(self) -> bool:
        return self._init.poll() is None

    def enter(self, *command: str | Path) -> list[str]:
        """The command line that runs `command` inside the machine."""
        return ["nsenter", f"--target={self._pid}", *NAMESPACES, "--", *map(str, command)]

    def run(self, *command: str | Path, timeout_s: float = 60, environment: Mapping[str, str] | None = None) -> str:
        """Run a command inside the machine and give its output."""
        done = subprocess.run(
            self.enter(*command),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env=os.environ | (environment or {}),
        )
        if done.returncode:
            raise TestbedFailed(f"`{' '.join(map(str, command))}` failed: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def start(
        self, name: str, command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None
    ) -> Program:
        """Start a program inside the machine, or start it again with this command; its log goes on."""
        program = Program(name, self.enter(*command), self.logs / f"{name}.log", environment or {})
        self.programs[name] = program
        return program

    def host_path(self, path: str) -> Path:
        """Where a file below one of the machine's own directories is to be found from outside."""
        if not path.startswith(init.OWN_DIRECTORIES):
            raise TestbedFailed(f"{path} is not below {', '.join(init.OWN_DIRECTORIES)}, which a machine has to itself")
        return self.directory / path.lstrip("/")

    def stop(self, *, keep_logs_in: Path | None = None) -> None:
        """End everything and remove every file, apart from the logs where somebody wants them."""
        for program in self.programs.values():
            program.resume()
        if self.running:
            assert self._init.stdin
            self._init.stdin.close()
            try:
                self._init.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._init.send_signal(signal.SIGKILL)
                self._init.wait()
        for program in self.programs.values():
            program.wait()
        network.disconnect(self.addresses)
        if keep_logs_in is not None:
            shutil.copytree(self.logs, keep_logs_in, dirs_exist_ok=True)
        shutil.rmtree(self.directory, ignore_errors=True)
        self._slot.release()


def _only_child(pid: int, *, patience_s: float = 5) -> int:
    """The process that `unshare` or `nsenter` forked into the namespaces."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            return int(children[0])
        time.sleep(0.005)
    raise TestbedFailed(f"process {pid} did not start its program within {patience_s} s")
