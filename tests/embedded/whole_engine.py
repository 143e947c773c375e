"""The whole embedded engine, as users start it: `tessera up --detach`, and `tessera down` at the end."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

START_S = 90


class WholeEngine:
    """Whoever starts it ends it. `environment` is added to our own."""

    def __init__(self, directory: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.state = directory / "state"
        self.kubeconfig = self.state / "kubeconfig"
        self.authority = self.state / "ca.crt"
        self._options = options
        self._environment = {**os.environ, **(environment or {})}

    @property
    def process(self) -> int:
        return int((self.state / "state.db.lock").read_text())

    def up(self, *more: str) -> subprocess.CompletedProcess[str]:
        return self.call("up", "--detach", *self._options, *more)

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Up, until whoever needs it is done."""
        try:
            started = self.up()
            assert started.returncode == 0, started.stderr
            yield self
        finally:
            self.down()

    def down(self) -> subprocess.CompletedProcess[str]:
        return self.call("down")

    def call(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        """One command about this engine, whatever becomes of it."""
        return self.command(command, *options, "--state-dir", str(self.state))

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "tessera.apps.cli", *arguments]
        return subprocess.run(argv, env=self._environment, capture_output=True, text=True, timeout=START_S, check=False)
