"""How much of the past is kept: not older than some minutes, not more than some versions."""

from collections import deque
from typing import NamedTuple

MARKS = 60
"""How finely age is told: history is kept by up to a sixtieth longer than it must be."""


class Retention(NamedTuple):
    age_s: float = 300.0
    versions: int = 20_000


RECENT = Retention()


class Ages:
    """When which version was the last. Times come in as arguments and only ever grow."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._spacing_s = retention.age_s / MARKS
        self._old_at = 0
        self._marks: deque[tuple[float, int]] = deque()

    def boundary(self, now_s: float, version: int) -> int:
        """Given the last version at this time: before which one everything may be forgotten."""
        if not self._marks or now_s - self._marks[-1][0] >= self._spacing_s:
            self._marks.append((now_s, version))
        while self._marks and self._marks[0][0] <= now_s - self._retention.age_s:
            self._old_at = self._marks.popleft()[1]
        return max(self._old_at, version - self._retention.versions)
