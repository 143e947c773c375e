"""What a machine must have before a cluster can run on it, said in a sentence when it is not there."""

import os
import shutil
import sys

from tessera.errors import TesseraError


class TestbedFailed(TesseraError):
    """The testbed could not build, start or stop something."""

    __test__ = False
    code = "TestbedFailed"


def missing() -> list[str]:
    """One sentence for each thing that is not here; empty where a cluster can run."""
    found: list[str] = []
    if sys.platform != "linux":
        return [f"the testbed needs Linux, this is {sys.platform}"]
    if os.geteuid() != 0:
        found.append("the testbed needs root for network and mount namespaces: run as root")
    if shutil.which("go") is None:
        found.append("the testbed builds Kubernetes with Go, and `go` is not on PATH: install Go 1.26 or newer")
    for tool, package in (("ip", "iproute2"), ("unshare", "util-linux"), ("nsenter", "util-linux"), ("apt-get", "apt")):
        if shutil.which(tool) is None:
            found.append(f"the testbed needs `{tool}`, and it is not on PATH: install {package}")
    return found


def require() -> None:
    if problems := missing():
        raise TestbedFailed("; ".join(problems))
