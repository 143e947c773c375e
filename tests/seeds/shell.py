"""Commands of a document, run as its readers would type them: by bash, at the root of the repository."""

import os
import subprocess
import sys
from pathlib import Path

from testbed.building import Programs
from tests.repository.files import ROOT
from tests.seeds.samples import Sample

PATIENCE_S = 90


def commands_of(sample: Sample) -> list[str]:
    """One for each line, or for several that a backslash joins; lines that only comment are left out."""
    lines = sample.text.replace("\\\n", "").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


class Shell:
    """kubectl, helm and tessera are ours, and the cluster is found by KUBECONFIG; what they remember is in `cache`."""

    def __init__(self, kubeconfig: Path, cache: Path) -> None:
        programs, ours = Programs(), Path(sys.executable).parent
        path = os.pathsep.join(
            [str(programs["kubectl"].parent), str(programs["helm"].parent), str(ours), os.environ["PATH"]]
        )
        # Discovery is cached by address, and the next cluster may have the same one.
        caches = {name: str(cache) for name in ("KUBECACHEDIR", "HELM_CACHE_HOME", "HELM_CONFIG_HOME")}
        self._environment = os.environ | caches | {"PATH": path, "KUBECONFIG": str(kubeconfig)}

    def run(self, command: str, input: str | None = None) -> str:
        """What it prints; it must end well."""
        done = subprocess.run(
            _in_bash(command),
            env=self._environment,
            cwd=ROOT,
            input=input,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"`{command}` failed: {done.stderr}"
        return done.stdout

    def run_until(self, command: str, text: str) -> None:
        """For a command that goes on by itself: it is ended when it has printed this."""
        process = subprocess.Popen(
            _in_bash(f"exec {command}"),
            env=self._environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout
        with process.stdout as lines:
            has_come = any(text in line for line in lines)
            process.terminate()
            process.wait(PATIENCE_S)
        assert has_come, f"`{command}` ended and did not print {text}"


def _in_bash(command: str) -> list[str]:
    return ["bash", "-euo", "pipefail", "-c", command]
