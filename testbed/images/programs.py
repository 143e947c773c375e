"""Programs of the machine that we lean on, and what we say when one is missing or fails."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.images.errors import ImageFailed


def run(
    command: Sequence[str | Path], *, to: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """What the command prints. `to` says what it is run for: "download busybox"."""
    program = find_program(str(command[0]), to=to)
    done = subprocess.run(
        [program, *command[1:]], env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ImageFailed(
            f"{Path(program).name} ended with {done.returncode} when asked to {to}: {last_words(done.stderr)}"
        )
    return done.stdout


def find_program(name: str, *, to: str) -> str:
    program = shutil.which(name)
    if program is None:
        raise ImageFailed(f"{name} is not on this machine, expected it in order to {to}; install it")
    return program


def last_words(text: str) -> str:
    """The last lines that a failing program left, on one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-3:]) or "it said nothing"
