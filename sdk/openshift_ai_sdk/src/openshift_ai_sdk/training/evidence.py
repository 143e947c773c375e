"""What a cluster tells about one job, and the one verdict that may come of it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Optional

from .documents import Document, mappings_at, text_at
from .notebook import explanation_table
from .pods import Pod, is_finished, launchers, name_of
from .ranks import Ranks, worker_names
from .statuses import FAILED, Event, Status


class Evidence(NamedTuple):
    """`events` are oldest first; `launcher_log` is its end, empty if there is none."""

    document: Document
    status: Status
    pods: list[Pod]
    events: list[Event]
    launcher_log: str
    ranks: Optional[Ranks]

    @property
    def failed_reason(self) -> str:
        conditions = mappings_at(self.document, "status", "conditions")
        return " ".join(text_at(one, "reason") for one in conditions if one.get("type") == FAILED)

    @property
    def unfinished_pods(self) -> list[Pod]:
        return [pod for pod in self.pods if not is_finished(pod)]

    @property
    def missing_pods(self) -> list[str]:
        """Those that should be there; a launcher has a random end of its name, which nobody knows yet."""
        there = {name_of(pod) for pod in self.pods}
        absent = [name for name in worker_names(self.document) if name not in there]
        return absent if launchers(self.pods) else [*absent, f"{text_at(self.document, 'metadata', 'name')}-launcher"]

    def events_of(self, pod: Pod) -> Iterator[Event]:
        return (one for one in self.events if text_at(one, "involvedObject", "name") == name_of(pod))

    def last_message(self, pod: Pod, reason: str) -> str:
        said = [text_at(one, "message") for one in self.events_of(pod) if text_at(one, "reason") == reason]
        return said[-1] if said else ""


@dataclass(frozen=True)
class Explanation:
    """One verdict: `cause` in a word, `verdict` in a sentence, `fix`, and the `evidence` for it."""

    cause: str
    verdict: str
    fix: str
    evidence: tuple[str, ...] = ()

    def __str__(self) -> str:
        seen = "".join(f"\n  seen: {line}" for line in self.evidence)
        return f"{self.cause}: {self.verdict}\n  fix: {self.fix}{seen}"

    def _repr_html_(self) -> str:
        return explanation_table(self.cause, self.verdict, self.fix, self.evidence)
