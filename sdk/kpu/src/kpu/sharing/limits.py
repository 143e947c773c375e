"""How much shared memory may be held, and from what size on it is used: parts of the memory that a process may take."""

from dataclasses import dataclass

from kpu.machine import memory_bytes
from kpu.sharing.allowance import Allowance

_MEMORY_BYTES = memory_bytes()
SMALLEST_BYTES = 256 << 10


@dataclass(frozen=True)
class Limits:
    """Of one link: how many regions it may lend and borrow, and what may lie idle. Of all links of a process: the rest.

    Payloads smaller than `smallest` go over gRPC: that is faster for them.
    """

    smallest: int = SMALLEST_BYTES
    own_bytes: int = _MEMORY_BYTES // 2
    borrowed_bytes: int = _MEMORY_BYTES // 2
    all_regions: int = 8192
    regions: int = 1024
    idle_bytes: int = _MEMORY_BYTES // 8
    idle_seconds: float = 10.0

    def lending(self, within: Allowance | None = None) -> Allowance:
        """For what all links lend, in regions of their own."""
        return Allowance(self.own_bytes, within, self.all_regions)

    def borrowing(self) -> Allowance:
        """For what all peers together make this process map."""
        return Allowance(self.borrowed_bytes, None, self.all_regions)

    @classmethod
    def of_memory(cls, nbytes: int) -> "Limits":
        """For a process that may take so many bytes for tensors. What lies idle is let go of when there is no room."""
        return cls(own_bytes=nbytes // 2, borrowed_bytes=nbytes, idle_bytes=nbytes // 2)
