"""How much shared memory may be held, and from what size on it is used. Defaults are parts of the memory there is."""

from dataclasses import dataclass

from kpu.machine import memory_bytes

_MEMORY_BYTES = memory_bytes()
SMALLEST_BYTES = 256 << 10
OWN_BYTES = _MEMORY_BYTES // 2


@dataclass(frozen=True)
class Limits:
    """What one link may hold. Payloads smaller than `smallest` go over gRPC: that is faster for them."""

    smallest: int = SMALLEST_BYTES
    borrowed_bytes: int = _MEMORY_BYTES // 2
    regions: int = 1024
    idle_bytes: int = _MEMORY_BYTES // 8
    idle_seconds: float = 10.0
