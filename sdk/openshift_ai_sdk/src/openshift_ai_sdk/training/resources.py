"""What one worker asks for: CPU cores, memory and GPUs, or a part of each GPU."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Optional

from .documents import mapping_at, put
from .quantities import parse_quantity

MAX_GPUS_PER_WORKER = 16
# Kubernetes counts bytes in a signed 64-bit integer.
MAX_MEMORY_BYTES = 2**63 - 1
GPU, GPU_MEMORY, GPU_CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
SAID_HERE = ("cpu", "memory", GPU, GPU_MEMORY, GPU_CORES)
KINDS = ("requests", "limits")
LAUNCHER_CPU, LAUNCHER_MEMORY = 1, "4Gi"
"""The most that a launcher gets of what a worker has: it starts the ranks and passes their output on."""


@dataclass
class ResourceRequirements:
    """Container resource requests and limits of one worker. Raises ValueError for what no cluster would accept.

    `gpu_memory_mb` and `gpu_cores` ask for a part of each GPU where Tessera shares them: MiB, and percent of its time.
    """

    cpu: int = 4
    memory: str = "16Gi"
    gpu: int = 0
    gpu_memory_mb: Optional[int] = None
    gpu_cores: Optional[int] = None

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raises ValueError as the constructor does: its fields may have been set since."""
        if not is_whole_number(self.cpu) or self.cpu <= 0:
            raise ValueError(f"cpu is {self.cpu!r}, expected a whole number of cores greater than 0")
        _check_memory(self.memory)
        if not is_whole_number(self.gpu) or not 0 <= self.gpu <= MAX_GPUS_PER_WORKER:
            raise ValueError(f"gpu is {self.gpu!r}, expected a whole number from 0 to {MAX_GPUS_PER_WORKER}")
        self._check_parts()

    def _check_parts(self) -> None:
        if self.gpu_memory_mb is not None and (not is_whole_number(self.gpu_memory_mb) or self.gpu_memory_mb <= 0):
            raise ValueError(f"gpu_memory_mb is {self.gpu_memory_mb!r}, expected a whole number of MiB greater than 0")
        if self.gpu_cores is not None and (not is_whole_number(self.gpu_cores) or not 1 <= self.gpu_cores <= 100):
            raise ValueError(
                f"gpu_cores is {self.gpu_cores!r}, expected a whole number from 1 to 100, percent of a GPU"
            )
        if not self.gpu and (self.gpu_memory_mb is not None or self.gpu_cores is not None):
            raise ValueError("gpu is 0, expected at least 1 where gpu_memory_mb or gpu_cores ask for a part of it")

    def for_worker(self) -> dict[str, Any]:
        """Requests and limits of its container, which are equal: so no neighbour can take what the ranks wait for."""
        amounts = {"cpu": str(self.cpu), "memory": self.memory}
        cards = {GPU: self.gpu or None, GPU_MEMORY: self.gpu_memory_mb, GPU_CORES: self.gpu_cores}
        wanted = {**amounts, **{key: str(value) for key, value in cards.items() if value is not None}}
        return {"requests": dict(wanted), "limits": dict(wanted)}

    def for_launcher(self) -> dict[str, Any]:
        """No GPU, and not more than a launcher needs."""
        smaller = _bytes(self.memory) < _bytes(LAUNCHER_MEMORY)
        wanted = {"cpu": str(min(self.cpu, LAUNCHER_CPU)), "memory": self.memory if smaller else LAUNCHER_MEMORY}
        return {"requests": dict(wanted), "limits": dict(wanted)}


def read_resources(container: Mapping[str, Any]) -> Optional[ResourceRequirements]:
    """Those of a worker's container, or None where there are none that can be said in these terms."""
    amounts = {**mapping_at(container, "resources", "requests"), **mapping_at(container, "resources", "limits")}
    try:
        return ResourceRequirements(
            cpu=_whole(amounts["cpu"]),
            memory=str(amounts["memory"]),
            gpu=_whole(amounts.get(GPU, 0)),
            gpu_memory_mb=_whole(amounts[GPU_MEMORY]) if GPU_MEMORY in amounts else None,
            gpu_cores=_whole(amounts[GPU_CORES]) if GPU_CORES in amounts else None,
        )
    except (KeyError, ValueError):
        return None


def replaced(before: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A container's resources with what is wanted now. What cannot be said here stays, such as disk and claims."""
    after = dict(before)
    for kind in KINDS:
        others = {name: amount for name, amount in mapping_at(before, kind).items() if name not in SAID_HERE}
        put(after, kind, {**mapping_at(wanted, kind), **others})
    return after


def is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _whole(quantity: object) -> int:
    value = parse_quantity(quantity)
    if value is None or value != value.to_integral_value():
        raise ValueError(f"{quantity!r} is not a whole number")
    return int(value)


def _bytes(memory: str) -> Decimal:
    return parse_quantity(memory) or Decimal(0)


def _check_memory(memory: object) -> None:
    memory_bytes = parse_quantity(memory) if isinstance(memory, str) else None
    if memory_bytes is None:
        raise ValueError(f'memory is {memory!r}, expected a Kubernetes quantity such as "16Gi" or "512M"')
    if memory_bytes < 1:
        raise ValueError(f'memory is {memory!r}, expected at least one byte, such as "16Gi"')
    if memory_bytes > MAX_MEMORY_BYTES:
        raise ValueError(f"memory is {memory!r}, expected less than 8Ei, the most that Kubernetes counts")
