"""`tessera run operator` as a process of a test."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.contract.waiting import eventually
from tests.embedded.server import free_port

TESSERA = [sys.executable, "-m", "tessera.apps.cli"]
STOP_S = 30


@contextmanager
def an_operator(kubeconfig: Path, namespace: str, log: Path, *flags: str) -> Iterator[str]:
    """Where it is asked. An orderly end of the block is an orderly end of the process."""
    address = f"127.0.0.1:{free_port()}"
    command = [*TESSERA, "run", "operator", "--kubeconfig", str(kubeconfig), "--metrics", address]
    with log.open("a") as file:
        process = subprocess.Popen(
            [*command, f"--lease-namespace={namespace}", *flags], stdout=file, stderr=subprocess.STDOUT
        )
    try:
        eventually(lambda: asked(f"http://{address}/readyz") == "ok")
        yield f"http://{address}"
    finally:
        process.terminate()
        status = process.wait(STOP_S)
    assert status == 0, log.read_text()


def asked(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return ""
