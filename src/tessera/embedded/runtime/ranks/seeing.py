"""Which ranks a worker has had, seen by looking at what its processes are told.

Every MPI tells a process its rank by a variable. There is nobody to ask who has just been started, so this looks often
when something has happened, and less and less while nothing does. A rank may be over before anybody looks. That there
was one is known all the same: a daemon of MPI starts nothing but ranks, and the kernel counts what its children cost.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

RANK_VARIABLES = (b"OMPI_COMM_WORLD_RANK=", b"PMIX_RANK=", b"PMI_RANK=")
OPEN_MPI, HYDRA = ("orted", "prted"), ("hydra", "pmi_proxy")
"""What the daemons of each are called. Open MPI has one on every host, Hydra only where there are ranks."""
LEAST_S, MOST_S = 0.005, 1.0
PATIENCE = 0.01
"""How long to wait, as a part of the time since something happened."""
FAULTS_OF_CHILDREN = 8
"""Where /proc/PID/stat has it, counted from behind the program's name."""


class Seen:
    """Written to `path` once somebody has come: the ranks, and whether some may have been missed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ranks = set[int]()
        self._has_missed_some = False
        self._is_anybody_here = False
        self._news_at = 0.0

    def expect(self, program: str) -> None:
        """Somebody has come who may start ranks, by running this."""
        self._is_anybody_here = True
        self._has_missed_some = self._has_missed_some or program.startswith(HYDRA)
        self._note()

    def wait_s(self) -> float | None:
        """How long until it is worth looking again; None, if nobody is here."""
        if not self._is_anybody_here:
            return None
        return min(MOST_S, max(LEAST_S, PATIENCE * (time.monotonic() - self._news_at)))

    def look(self) -> None:
        if not self._is_anybody_here:
            return
        processes = list(_descendants(os.getpid()))
        self._is_anybody_here = bool(processes)
        found = {rank for pid in processes if (rank := rank_of(pid)) is not None}
        has_missed_some = self._has_missed_some or any(map(had_children, processes))
        if not found <= self._ranks or has_missed_some != self._has_missed_some:
            self._ranks |= found
            self._has_missed_some = has_missed_some
            self._note()

    def _note(self) -> None:
        """A worker whose job is gone has nobody to tell."""
        self._news_at = time.monotonic()
        with suppress(OSError):
            fresh = self._path.with_suffix(".new")
            fresh.write_text(json.dumps({"ranks": sorted(self._ranks), "missed": self._has_missed_some}))
            fresh.replace(self._path)


def rank_of(pid: int) -> int | None:
    with suppress(OSError, ValueError):
        for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if variable.startswith(RANK_VARIABLES):
                return int(variable.partition(b"=")[2])
    return None


def had_children(pid: int) -> bool:
    """Whether it is a daemon of Open MPI with ranks that are over."""
    with suppress(OSError):
        head, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        return head.partition("(")[2].startswith(OPEN_MPI) and fields.split()[FAULTS_OF_CHILDREN] != "0"
    return False


def _descendants(pid: int) -> Iterator[int]:
    children: list[str] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            children += Path(f"/proc/{pid}/task/{task}/children").read_text().split()
    for child in map(int, children):
        yield child
        yield from _descendants(child)
