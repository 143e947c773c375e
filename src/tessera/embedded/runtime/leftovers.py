"""Processes of containers whose supervisor is gone, found by a mark in their environment.

Every process of a container carries `TESSERA_RUN`, which begins with the random name of the runtime that started it.
A runtime of another state directory has another name, so nobody else's processes are ever taken for ours. A process
keeps the mark through every fork, session and exec; one that clears its environment is found by its cgroup alone.
"""

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tessera.files import put_whole

VARIABLE = "TESSERA_RUN"
MOST_ROUNDS = 100


def runtime_name(directory: Path) -> str:
    """Random, and the same for as long as the directory is."""
    path = directory / "runtime-name"
    with suppress(FileNotFoundError):
        return path.read_text().strip()
    directory.mkdir(parents=True, exist_ok=True)
    name = secrets.token_hex(8)
    put_whole(path, name.encode(), mode=0o600)
    return name


def pod_of_marked(pid: int, name: str) -> str | None:
    """The uid of the pod whose process it is, "" for one of none of this runtime's; None where that cannot be seen."""
    wanted = f"{VARIABLE}={name}/".encode()
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    marks = (one.removeprefix(wanted) for one in variables if one.startswith(wanted))
    return next(marks, b"").partition(b"/")[0].decode(errors="replace")


def kill_marked(mark: str) -> int:
    """Kill every process whose mark begins with this one; returns how many. Who calls is spared, and who called it."""
    killed = set[int]()
    for _ in range(MOST_ROUNDS):
        found = set(_find_marked(mark))
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= found
        if not found:
            break
    return len(killed)


def _find_marked(mark: str) -> Iterator[int]:
    wanted = f"\0{VARIABLE}={mark}".encode()
    spared = set(_ancestors(os.getpid()))
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) in spared:
            continue
        with suppress(OSError):
            environment = Path(entry.path, "environ").read_bytes()
            if wanted in b"\0" + environment:
                yield int(entry.name)


def _ancestors(pid: int) -> Iterator[int]:
    while pid:
        yield pid
        with suppress(OSError):
            # The program's name, in parentheses, may hold anything; the fields after it do not.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            pid = int(fields[1])
            continue
        return
