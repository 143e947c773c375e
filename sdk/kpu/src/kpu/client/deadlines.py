"""How much time is left of what a caller gave for the whole, so that no part of it takes the whole anew."""

import math
import time
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self


@dataclass(frozen=True)
class Deadline:
    """`timeout_s` is what the caller said, None for ever. As text it is that, with its unit."""

    timeout_s: float | None
    until_s: float

    @classmethod
    def after(cls, timeout_s: float | None) -> Self:
        if not is_time(timeout_s):
            raise ValueError(f"timeout is {timeout_s!r}, expected seconds, such as 300, or None to wait for ever")
        return cls(timeout_s, math.inf if timeout_s is None else time.monotonic() + timeout_s)

    @property
    def left_s(self) -> float:
        """Never below zero."""
        return max(self.until_s - time.monotonic(), 0.0)

    @property
    def has_passed(self) -> bool:
        return self.left_s == 0.0

    def share(self, most_s: float, least_s: float = 0.0) -> float:
        """What one step may take that would by itself be given `most_s`, and is in vain with less than `least_s`."""
        return min(most_s, max(self.left_s, least_s))

    def __str__(self) -> str:
        return "no limit" if self.timeout_s is None else f"{self.timeout_s:g} s"


def is_time(given: Any) -> bool:
    """Seconds, or None for ever."""
    if given is None:
        return True
    return not isinstance(given, bool) and isinstance(given, Real) and not math.isnan(given)
