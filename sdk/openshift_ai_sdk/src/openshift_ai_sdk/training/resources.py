"""What one worker asks for: CPU cores, memory and GPUs."""

import re
from dataclasses import dataclass
from decimal import Decimal

MAX_GPUS_PER_WORKER = 16
# Kubernetes counts bytes in a signed 64-bit integer.
MAX_MEMORY_BYTES = 2**63 - 1

# The grammar of resource.Quantity: a signed decimal number, then a power of two, a power of ten, or an exponent.
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,4})|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))"
)
_MULTIPLIERS = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}


@dataclass
class ResourceRequirements:
    """Container resource requests and limits of one worker. Raises ValueError for what no cluster would accept."""

    cpu: int = 4
    memory: str = "16Gi"
    gpu: int = 0

    def __post_init__(self) -> None:
        if not _is_whole_number(self.cpu) or self.cpu <= 0:
            raise ValueError(f"cpu is {self.cpu!r}, expected a whole number of cores greater than 0")
        _check_memory(self.memory)
        if not _is_whole_number(self.gpu) or not 0 <= self.gpu <= MAX_GPUS_PER_WORKER:
            raise ValueError(f"gpu is {self.gpu!r}, expected a whole number from 0 to {MAX_GPUS_PER_WORKER}")


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_memory(memory: object) -> None:
    match = _QUANTITY.fullmatch(memory) if isinstance(memory, str) else None
    if match is None:
        raise ValueError(f'memory is {memory!r}, expected a Kubernetes quantity such as "16Gi" or "512M"')
    memory_bytes = _bytes_of(match)
    if memory_bytes < 1:
        raise ValueError(f'memory is {memory!r}, expected at least one byte, such as "16Gi"')
    if memory_bytes > MAX_MEMORY_BYTES:
        raise ValueError(f"memory is {memory!r}, expected less than 8Ei, the most that Kubernetes counts")


def _bytes_of(match: "re.Match[str]") -> Decimal:
    if match["exponent"] is not None:
        return Decimal(f"{match['number']}e{match['exponent']}")
    return Decimal(match["number"]) * _MULTIPLIERS[match["suffix"]]
