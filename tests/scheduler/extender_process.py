"""`tessera run extender` as a process of its own, to be asked, stopped and killed by tests."""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

TESSERA = [sys.executable, "-m", "tessera.apps.cli"]
PATIENCE_S = 60


class ExtenderProcess:
    def __init__(self, kubeconfig: Path, address: str, log: Path, *flags: str) -> None:
        self.url = f"http://{address}"
        self._log = log
        command = [*TESSERA, "run", "extender", "--kubeconfig", str(kubeconfig), "--http", address, *flags]
        with log.open("a") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=file)

    def wait_until_ok(self, path: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self._says_ok(path):
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < deadline, self._log.read_text()[-2000:]
            time.sleep(0.05)

    def _says_ok(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def post(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.url}/{verb}", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def get(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/{path}", timeout=10) as answer:
            return json.load(answer)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """End it in order, as a rollout does."""
        self._process.terminate()
        assert self._process.wait(timeout=20) == 0

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
