"""Where the ranks of a job ran, as far as anything tells.

Open MPI 5 does not read the operator's variables: it starts all ranks in the launcher and ends well, and the job is
called a success that used one host of many. Tessera's controller notes on the job where ranks were started. Elsewhere
the logs of the workers' sshd show who was let in; where nothing tells, nothing is claimed.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple, Optional, cast

from .documents import RAN_ON, Document, int_at, list_at, mapping_at, text_at
from .settings import LAUNCHER, REPLICAS, WORKER, first_container

_ENTERED = re.compile(r"Accepted (?:publickey|password|hostbased) for|Starting session:")
_LISTENING = re.compile(r"Server listening on")


_STARTS_RANKS = re.compile(r"\b(?:mpirun|mpiexec|horovodrun|prterun|orterun|deepspeed)\b")


class RanksNotEverywhere(UserWarning):
    """A job has ended well, and some of its workers had no part in it."""


class Ranks(NamedTuple):
    """`used` are the workers that had ranks, with their number where it is known; `unknown` those that nothing tells
    of.
    """

    workers: list[str]
    used: dict[str, Optional[int]]
    unknown: list[str]
    source: str

    @property
    def unused(self) -> list[str]:
        return [one for one in self.workers if one not in self.used and one not in self.unknown]

    @property
    def is_everywhere(self) -> Optional[bool]:
        """None where that is not known."""
        return False if self.unused else None if self.unknown else True

    def __str__(self) -> str:
        if self.is_everywhere is None:
            return f"it is not known where the ranks ran ({self.source})"
        return f"ranks ran on {len(self.used)} of {len(self.workers)} workers ({self.source})"


def ranks_by_annotation(document: Document) -> Optional[Ranks]:
    """What the controller noted, or None if it notes nothing."""
    try:
        noted: object = json.loads(text_at(mapping_at(document, "metadata", "annotations"), RAN_ON))
    except ValueError:
        return None
    if not isinstance(noted, dict):
        return None
    counts = cast(Mapping[str, object], noted)
    workers = worker_names(document)
    used = {
        name: count if isinstance(count, int) else None for name, count in counts.items() if name in workers and count
    }
    return Ranks(workers, used, [], "the controller's note on the job")


def is_worth_a_warning(document: Document, ranks: Ranks) -> bool:
    """Not where no rank was ever meant to be: a launcher may run something else than MPI."""
    launcher = first_container(document, LAUNCHER)
    words = " ".join(str(word) for key in ("command", "args") for word in list_at(launcher, key))
    return ranks.is_everywhere is False and (bool(ranks.used) or bool(_STARTS_RANKS.search(words)))


def ranks_by_logs(document: Document, logs: Mapping[str, str]) -> Ranks:
    """`logs` are those of the workers that still have one."""
    workers = worker_names(document)
    used: dict[str, Optional[int]] = {name: None for name in workers if _ENTERED.search(logs.get(name, ""))}
    quiet = [name for name in workers if name not in used and not _LISTENING.search(logs.get(name, ""))]
    return Ranks(workers, used, quiet, "the workers' sshd" if len(quiet) < len(workers) else "nothing tells")


def worker_names(document: Document) -> list[str]:
    count = int_at(document, *REPLICAS, WORKER, "replicas") or 0
    return [f"{text_at(document, 'metadata', 'name')}-worker-{index}" for index in range(count)]
