"""Programs that use a client, each in a process of its own, as their authors would start them."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.repository.files import ROOT

PYTHON_CLIENT = ROOT / "examples/client/python"
PATIENCE_S = 90


def run_python(
    *arguments: str, kubeconfig: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Python with these arguments; the example client can be imported, the cluster is found as kubectl finds it."""
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env={**os.environ, "PYTHONPATH": str(PYTHON_CLIENT), "KUBECONFIG": str(kubeconfig), **(environment or {})},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
