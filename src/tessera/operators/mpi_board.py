"""The boards of MPIJobs: what became of each worker, for those who wait for it, and which ranks each has seen.

A board is a directory, because whoever runs in a pod of this machine can read one without any right to the API. It is
made anew from the API whenever a job is looked at, and goes with its job.
"""

import json
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from tessera.model.mpi_hosts import ranks_file, state_file
from tessera.operators.mpi_pods import MpiPod

Ranks = Mapping[str, int]


class _Seen(msgspec.Struct, frozen=True):
    ranks: tuple[int, ...]
    missed: bool


class Boards:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._told: dict[Path, str] = {}

    def open(self) -> None:
        """Only whoever has started us may look."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def tell(self, uid: str, workers: Collection[MpiPod]) -> None:
        """What is told already is not written again."""
        self.post(uid, {state_file(pod.name): f"{pod.status.phase}\n{' '.join(pod.why.split())}\n" for pod in workers})

    def post(self, uid: str, files: Mapping[str, str]) -> None:
        board = self._directory / uid
        for name, words in files.items():
            path = board / name
            if self._told.get(path) == words:
                continue
            board.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = path.with_name(f".{name}.new")
            fresh.touch(mode=0o600)
            fresh.write_text(words)
            fresh.replace(path)
            self._told[path] = words

    def ranks(self, uid: str, workers: Collection[str]) -> Ranks:
        """How many each has had, at the least: one may be over before it is counted, but not before it is noticed."""
        return {worker: self._count(self._directory / uid / ranks_file(worker)) for worker in workers}

    def keep(self, uids: Collection[str]) -> None:
        """Remove the boards of all other jobs."""
        with suppress(FileNotFoundError):
            for board in self._directory.iterdir():
                if board.name not in uids:
                    shutil.rmtree(board, ignore_errors=True)
        self._told = {path: words for path, words in self._told.items() if path.parent.name in uids}

    def _count(self, path: Path) -> int:
        try:
            seen = msgspec.json.decode(path.read_bytes(), type=_Seen)
        except (OSError, msgspec.MsgspecError):
            return 0
        return len(seen.ranks) or int(seen.missed)


def write_ranks(ranks: Ranks) -> str:
    """As the annotation has them."""
    return json.dumps(dict(ranks), separators=(",", ":"))
