"""The embedded API server as a process of its own, with its state in a directory."""

import socket
import subprocess
import sys
from pathlib import Path

import urllib3

from tests.contract.api import Api
from tests.contract.waiting import eventually

HOST = "127.0.0.1"
STOP_S = 30


class Server:
    """Whoever starts it ends it. A port that it had once it has again after a restart."""

    def __init__(self, directory: Path) -> None:
        self.state = directory / "state"
        self.state.mkdir(exist_ok=True)
        self.kubeconfig = self.state / "kubeconfig"
        self.authority = self.state / "ca.crt"
        self._log = directory / "server.log"
        self._port = free_port()
        self.url = f"https://{HOST}:{self._port}"
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        eventually(self._is_ready)

    def command(self) -> list[str]:
        options = ["--state-dir", str(self.state), "--port", str(self._port)]
        return [sys.executable, "-m", "tessera.apps.api_server", *options]

    def kill(self) -> None:
        """Without a chance to finish anything."""
        self.process.kill()
        self.process.wait(STOP_S)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(STOP_S)

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self._log.read_text()
        if not self.kubeconfig.exists():
            return False
        try:
            with Api(self.kubeconfig) as api:
                return api.send("GET", "/readyz").status == 200
        except urllib3.exceptions.HTTPError:
            return False


def free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        return listener.getsockname()[1]
