"""What all sections need: the card, the library, how much time they may take, and a place for what they find."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .observers import Card
from .tables import Row
from .tenants import Tenant, native_environment
from .workers import Worker

SHORTEST_S = 0.5
MOST_SHOWN = 8


@dataclass
class Bench:
    section: str
    out: Path
    scratch: Path
    library: Path
    card: Card
    is_quick: bool
    only: frozenset[str]
    everything: dict[str, dict[str, Any]]
    """By section, what was found so far in this run."""
    began_at: float = field(default_factory=time.monotonic)

    def seconds(self, wanted: float) -> float:
        """Whole windows, fewer of them in a quick run."""
        return max(SHORTEST_S, round(wanted * 0.25, 1)) if self.is_quick else wanted

    def times(self, wanted: int) -> int:
        return max(1, wanted // 10) if self.is_quick else wanted

    def is_asked(self, part: str) -> bool:
        return not self.only or part in self.only

    def tenant(self, group: str, name: str = "tenant") -> Tenant:
        """Tenants of one group meet on the card, those of different groups never."""
        return Tenant(name, self.scratch / self.section / group, self.library, self.card.uuid())

    def work(self, load: str, tenant: Tenant | None, *arguments: str) -> Worker:
        environment = tenant.environment() if tenant else native_environment()
        return Worker("loads", [load, *arguments], environment)

    def note(self, name: str, finding: dict[str, Any]) -> None:
        """Printed at once and kept at once: what runs out of time has not run for nothing."""
        findings = self.everything.setdefault(self.section, {})
        again = sum(1 for known in findings if known == name or known.startswith(f"{name} ("))
        findings[f"{name} ({again + 1})" if again else name] = finding
        (self.out / "findings.json").write_text(json.dumps(self.everything, indent=1))
        shown = {key: _short(value) for key, value in finding.items() if not _is_long(value)}
        print(f"[{time.monotonic() - self.began_at:6.1f} s] {self.section} {name}: {json.dumps(shown)}", flush=True)

    def attempt(self, part: str, measure: Callable[[], list[Row]]) -> list[Row]:
        """A part that fails, in whichever way, says so in the table, and the others go on: time on a card is short."""
        if not self.is_asked(part):
            return []
        try:
            return measure()
        except Exception as failure:
            why = str(failure) or type(failure).__name__
            self.note(f"{part} failed", {"why": why})
            return [Row(part, ours=f"failed: {why.splitlines()[-1][:200]}", holds=False)]


def _is_long(value: object) -> bool:
    return isinstance(value, list) and len(value) > MOST_SHOWN


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items() if not _is_long(one)}
    return [_short(one) for one in value] if isinstance(value, list) else value
