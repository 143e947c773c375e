"""Containers run by hand: containerd and runc in a machine of the testbed, driven with ctr."""

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from testbed.container_runtime import KUBERNETES_NAMESPACE, SOCKET, ContainerRuntime
from testbed.machine import Machine

NO_FILES: Mapping[str, Path] = MappingProxyType({})


class Containers:
    """Containers that see the network of their machine. `files` are mounted where their keys say."""

    def __init__(self, machine: Machine, runtime: ContainerRuntime, *, ctr: Path, runc: Path) -> None:
        self.runtime = runtime
        self._machine = machine
        self._ctr = [ctr, "--address", SOCKET, "--namespace", KUBERNETES_NAMESPACE]
        self._runc = runc

    def run(self, name: str, reference: str, *command: str, files: Mapping[str, Path] = NO_FILES) -> str:
        """What the container prints; it must end well."""
        with self._start(name, reference, command, files) as process:
            output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
        return output

    @contextmanager
    def running(
        self, name: str, reference: str, *command: str, files: Mapping[str, Path] = NO_FILES
    ) -> Iterator[subprocess.Popen[str]]:
        """A container that runs, as the ctr that lives as long as it does; killed in the end if it has not ended."""
        with self._start(name, reference, command, files) as process:
            try:
                self._await_task(name, process)
                yield process
            finally:
                if process.poll() is None:
                    self.signal(name, "SIGKILL")
                process.communicate(timeout=10)

    def execute(self, name: str, *command: str) -> str:
        return self.runtime.ctr("tasks", "exec", f"--exec-id=exec-{name}", name, *command)

    def signal(self, name: str, number: str) -> None:
        self.runtime.ctr("tasks", "kill", f"--signal={number}", name)

    def _start(
        self, name: str, reference: str, command: tuple[str, ...], files: Mapping[str, Path]
    ) -> subprocess.Popen[str]:
        mounts = [f"--mount=type=bind,src={file},dst={at},options=rbind:ro" for at, file in files.items()]
        # --net-host would mount the resolv.conf of the host too.
        options = ["--rm", "--with-ns=network:/proc/1/ns/net"]
        options += [f"--runc-binary={self._runc}", f"--cgroup={self._machine.cgroup}/{name}"]
        return subprocess.Popen(
            self._machine.enter(*self._ctr, "run", *options, *mounts, reference, name, *command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _await_task(self, name: str, process: subprocess.Popen[str], *, patience_s: float = 30) -> None:
        """ctr offers no event for this; each question takes it a moment, so nothing else is waited for."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline and process.poll() is None:
            tasks = [line.split() for line in self.runtime.ctr("tasks", "ls").splitlines()]
            if any(words[0] == name and words[2] == "RUNNING" for words in tasks):
                return
        raise AssertionError(f"container {name} did not run within {patience_s:g} s")
