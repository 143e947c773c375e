"""The Dockerfile as instructions, as far as ours uses the language."""

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

CONTINUED = re.compile(r"\\\n\s*")


@dataclass(frozen=True)
class Stage:
    """What stands between one FROM and the next."""

    base: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, keyword: str) -> list[str]:
        return [rest for found, rest in self.instructions if found == keyword]

    def only(self, keyword: str) -> str:
        (rest,) = self.all(keyword)
        return rest

    def pairs(self, keyword: str) -> dict[str, str]:
        """The settings of ENV or LABEL."""
        words = (word for rest in self.all(keyword) for word in shlex.split(rest))
        return dict(word.split("=", 1) for word in words)

    def listed(self, keyword: str) -> tuple[str, ...]:
        """The words of an instruction in its JSON form."""
        return tuple(json.loads(self.only(keyword)))

    def copied(self) -> list[str]:
        """What COPY takes from the build context."""
        copies = [rest.split() for rest in self.all("COPY")]
        return [source for words in copies if not words[0].startswith("--from=") for source in words[:-1]]


def read_stages(dockerfile: Path) -> list[Stage]:
    lines = [line for line in dockerfile.read_text().splitlines() if not line.lstrip().startswith("#")]
    stages: list[Stage] = []
    for line in CONTINUED.sub(" ", "\n".join(lines)).splitlines():
        keyword, _, rest = line.partition(" ")
        if keyword == "FROM":
            base, _, name = rest.partition(" AS ")
            stages.append(Stage(base, name))
        elif keyword:
            stages[-1].instructions.append((keyword, rest.strip()))
    return stages
