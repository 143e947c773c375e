"""Regions that wait to be used again. Touching fresh memory costs several times what copying into used memory does.

Pure: time comes in, and what leaves the pool goes out as a list for the owner to unmap. The pool is bounded in bytes
and in how long a region may lie idle, so that a transfer of long ago costs no memory today.
"""

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def size(self) -> int: ...


R = TypeVar("R", bound=Sized)


@dataclass
class Pool(Generic[R]):
    """Idle regions, the one idle for longest first."""

    bytes_limit: int
    idle_seconds: float
    _idle: list[tuple[float, R]] = field(default_factory=list[tuple[float, R]])

    @property
    def idle_bytes(self) -> int:
        return sum(region.size for _, region in self._idle)

    @property
    def next_expiry(self) -> float | None:
        return self._idle[0][0] + self.idle_seconds if self._idle else None

    def fits(self, region: R, nbytes: int) -> bool:
        return nbytes <= region.size <= 2 * nbytes

    def take(self, nbytes: int) -> R | None:
        """The smallest idle region that holds these bytes and is not more than twice too large for them."""
        fitting = [entry for entry in self._idle if self.fits(entry[1], nbytes)]
        if not fitting:
            return None
        best = min(fitting, key=lambda entry: (entry[1].size, -entry[0]))
        self._idle.remove(best)
        return best[1]

    def put(self, region: R, now: float) -> list[R]:
        """Keep a region for the next taker; returns those that have to leave for it, the oldest first."""
        self._idle.append((now, region))
        leaving: list[R] = []
        while self.idle_bytes > self.bytes_limit:
            leaving.append(self._idle.pop(0)[1])
        return leaving

    def expire(self, now: float) -> list[R]:
        """Those that were idle for too long."""
        leaving = [region for since, region in self._idle if since + self.idle_seconds <= now]
        self._idle = [entry for entry in self._idle if entry[0] + self.idle_seconds > now]
        return leaving

    def clear(self) -> list[R]:
        leaving, self._idle = [region for _, region in self._idle], []
        return leaving
