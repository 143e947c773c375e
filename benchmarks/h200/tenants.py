"""What makes a process one of a tenant: the library before it, a limits file, a region, and the card's file.

A container would have them mounted; here they are named by variables. Two tenants have their own region and limits, and
share the directory of cards, as two containers of one node do.
"""

import os
from dataclasses import dataclass
from pathlib import Path

OURS = ("LD_PRELOAD", "TESSERA_LIMITS", "TESSERA_REGION", "TESSERA_CARDS", "TESSERA_AGENT")


def native_environment() -> dict[str, str]:
    """Of a process that nothing stands before."""
    return {name: value for name, value in os.environ.items() if name not in OURS}


@dataclass(frozen=True)
class Tenant:
    name: str
    directory: Path
    library: Path
    card: str

    def environment(self) -> dict[str, str]:
        """The card's file is made here, as the node's agent makes it, so that whoever comes first finds it."""
        cards = self.directory / "cards"
        cards.mkdir(parents=True, exist_ok=True)
        (cards / self.card).touch()
        return native_environment() | {
            "LD_PRELOAD": str(self.library),
            "TESSERA_LIMITS": str(self._limits),
            "TESSERA_REGION": str(self.directory / f"{self.name}.region"),
            "TESSERA_CARDS": str(cards),
            "TESSERA_AGENT": str(self.directory / "no-agent"),
        }

    def limit(self, cores_percent: int = 0, memory_mib: int = 0, policy: str = "force", priority: int = 0) -> None:
        """Holds within a hundredth of a second, also for processes that run. 0 is no limit."""
        text = (
            f"version 1\ncard {self.card} memory_mib {memory_mib} cores_percent {cores_percent}\n"
            f"cores_policy {policy}\npriority {priority}\n"
        )
        self.directory.mkdir(parents=True, exist_ok=True)
        written = self._limits.with_suffix(".new")
        written.write_text(text)
        written.replace(self._limits)

    @property
    def _limits(self) -> Path:
        return self.directory / f"{self.name}.limits"
