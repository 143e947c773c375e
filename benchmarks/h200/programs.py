"""The C programs of the bench, built where they are measured, and run to their one line of JSON."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent
FLAGS = ["-O2", "-Wall"]
LONGEST_S = 60.0


def build_micro(scratch: Path) -> Path:
    target = scratch / "programs/micro"
    target.parent.mkdir(parents=True, exist_ok=True)
    compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
    subprocess.run([compiler, *FLAGS, "-o", str(target), str(SOURCES / "micro.c"), "-ldl"], check=True)
    return target


def run_program(command: list[str], environment: dict[str, str], longest_s: float = LONGEST_S) -> dict[str, Any]:
    """What it printed; raises OSError with its last words where it failed or hung."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=longest_s, check=False)
    except subprocess.TimeoutExpired:
        raise OSError(f"{command} did not end within {longest_s:.0f} s") from None
    if done.returncode:
        raise OSError(f"{command} ended with {done.returncode}: {done.stdout.strip()} {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])
