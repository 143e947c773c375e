"""Shares and their evenness, from moments and intervals. Pure: all times come in.

A share over seconds says little about a program that stalls for half of one, so everything is also cut into windows of
100 ms, and their coefficient of variation is what "even" means here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

WIDTH_S = 0.1
WIDTH_NS = 100_000_000
LEAD_NS = 100_000_000
"""Left out at the start of a profile, while the profiler gets going."""

RECENT_S = 0.1

Stamp = tuple[float, float]
"""When a step was done, and how many units of work it was."""


@dataclass(frozen=True)
class Gaps:
    """Milliseconds between one completion and the next."""

    p50_ms: float
    p99_ms: float
    longest_ms: float


def per_window(stamps: Iterable[Stamp], begins_at: float, seconds: float) -> list[float]:
    """Units done in each window."""
    done = [0.0] * max(1, round(seconds / WIDTH_S))
    for at, units in stamps:
        place = int((at - begins_at) / WIDTH_S)
        if at >= begins_at and place < len(done):
            done[place] += units
    return done


def variation(values: Sequence[float]) -> float | None:
    """Standard deviation over mean; none where nothing happened."""
    mean = sum(values) / len(values) if values else 0.0
    if not mean:
        return None
    return (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5 / mean


def gaps(stamps: Sequence[Stamp]) -> Gaps | None:
    found = sorted((later - sooner) * 1e3 for (sooner, _), (later, _) in pairwise(stamps))
    if not found:
        return None
    return Gaps(found[len(found) // 2], found[len(found) * 99 // 100], found[-1])


def busy_shares(intervals: Iterable[tuple[int, int]], begins_ns: int, ends_ns: int) -> list[float]:
    """The share of each whole window in which at least one interval was open."""
    begins_ns += LEAD_NS
    busy = [0] * max(0, (ends_ns - begins_ns) // WIDTH_NS)
    covered_until = begins_ns
    for opened, closed in sorted(intervals):
        start = max(opened, covered_until)
        covered_until = max(covered_until, closed)
        while start < closed:
            place = (start - begins_ns) // WIDTH_NS
            if place >= len(busy):
                break
            until = min(closed, begins_ns + (place + 1) * WIDTH_NS)
            busy[place] += until - start
            start = until
    return [share / WIDTH_NS for share in busy]


def went_on_for(moments: Sequence[float], begins_at: float, ends_at: float) -> float | None:
    """How long after `begins_at` the last moment before `ends_at` was; none where it had stopped already before."""
    if not any(begins_at - RECENT_S <= moment < begins_at for moment in moments):
        return None
    return max((moment for moment in moments if begins_at <= moment < ends_at), default=begins_at) - begins_at
