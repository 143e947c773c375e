"""The Java client: built by Maven in a directory of its own, and small programs compiled against it."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from testbed.building import cache_directory, locked
from testbed.fixtures import require
from tests.contract.java_program import build as build_contract
from tests.contract.java_program import missing_for_java
from tests.repository.files import ROOT
from tests.seeds.samples import Sample

JAVA_CLIENT = ROOT / "examples/client/java"
PATIENCE_S = 400
_DECLARED = re.compile(r"^\s*[A-Z]\w*(?:<[^>]*>)?\s+(\w+)\s*=", re.MULTILINE)


def require_java() -> None:
    missing = missing_for_java()
    require(not missing, "; ".join(missing))


def run_maven(directory: Path, *goals: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """With a cluster, or with none at all."""
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    if kubeconfig:
        environment["KUBECONFIG"] = str(kubeconfig)
    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "maven.lock"):  # Maven's repository is no place for two at once
        return subprocess.run(
            ["mvn", "--batch-mode", "--no-transfer-progress", *goals],
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )


def copy_client(directory: Path) -> Path:
    """What Maven makes must not lie in the repository."""
    return Path(shutil.copytree(JAVA_CLIENT, directory / "java", ignore=shutil.ignore_patterns("target")))


class Compiler:
    """Compiles and runs programs that use the client; its libraries are those of the contract's Java program."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._class_path = f"{directory}:{build_contract()}/target/dependency/*"
        self._compile(JAVA_CLIENT / "HAMiClient.java")

    def run(self, name: str, statements: str, kubeconfig: Path) -> str:
        source = self._directory / f"{name}.java"
        body = f"public static void main(String[] arguments) {{\n{statements}\nSystem.exit(0);\n}}"
        source.write_text(f"import java.util.*;\nclass {name} {{\n{body}\n}}\n")
        self._compile(source)
        done = subprocess.run(
            ["java", "-cp", self._class_path, name],
            env=os.environ | {"KUBECONFIG": str(kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _compile(self, source: Path) -> None:
        command = ["javac", "--release", "17", "-cp", self._class_path, "-d", str(self._directory), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr


def with_declarations(sample: Sample, earlier: Sequence[Sample]) -> str:
    """The sample's statements, after the single declarations of earlier samples whose names it uses."""
    used = set(re.findall(r"\w+", sample.text)) - set(_DECLARED.findall(sample.text))
    lines = [line for one in earlier for line in one.text.splitlines()]
    needed = [line for line in lines if (found := _DECLARED.match(line)) and found[1] in used and line.endswith(";")]
    return "\n".join([*needed, sample.text])
