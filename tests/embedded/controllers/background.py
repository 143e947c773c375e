"""The controllers in the background of tests: started, killed in the middle of anything, and started again."""

import subprocess
import sys
from pathlib import Path


class Background:
    def __init__(self, kubeconfig: Path, authority: Path, log: Path) -> None:
        self._command = [sys.executable, "-m", "tests.embedded.controllers.program", str(kubeconfig), str(authority)]
        self._log = log
        self.start()

    def start(self) -> None:
        root = Path(__file__).parents[3]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=root, stdout=log, stderr=log)

    def kill(self) -> None:
        assert self._process.poll() is None, self._log.read_text()
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()
