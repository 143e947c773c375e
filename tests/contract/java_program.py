"""The Java program of the contract: built once for its sources, kept outside the tree, run against an engine."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

from testbed.building import cache_directory, locked
from tests.contract.engines import Engine

SOURCES = Path(__file__).parent / "java"
MAIN = "tessera.contract.Contract"
PATIENCE_S = 60


def missing_for_java() -> list[str]:
    """One sentence for each thing that a build needs and is not here."""
    needed = {"javac": "a JDK, 17 or newer", "mvn": "Maven"}
    return [
        f"the Java client is built with `{tool}`, and it is not on PATH: install {what}"
        for tool, what in needed.items()
        if shutil.which(tool) is None
    ]


def run_checks(engine: Engine, namespace: str, group: str) -> dict[str, str | None]:
    """The error of each check, or None where it passed."""
    built = build()
    class_path = f"{built}/target/classes:{built}/target/dependency/*"
    command = ["java", "-cp", class_path, MAIN, str(engine.kubeconfig), namespace, group]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    return {verdict["check"]: verdict["error"] for verdict in verdicts}


def build() -> Path:
    """The directory with the built program; what Maven downloads stays in its own repository."""
    cache = cache_directory() / "java"
    target = cache / f"contract-{_fingerprint()}"
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "contract.lock"):
        if not target.is_dir():
            _build_into(target)
    return target


def _build_into(target: Path) -> None:
    unfinished = target.with_name(f".{target.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(SOURCES, unfinished)
    goals = ["compile", "dependency:copy-dependencies"]
    done = subprocess.run(
        ["mvn", "--batch-mode", "--quiet", f"--file={unfinished}/pom.xml", *goals],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    unfinished.rename(target)


def _fingerprint() -> str:
    files = sorted(path for path in SOURCES.rglob("*") if path.is_file())
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:12]
