"""The directory by which the simulated CUDA driver knows the cards of a machine.

Programs that load the libraries of `native/sim` find it through TESSERA_SIM. What is written here is read there, in
`machine.c`, so the two say the same.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from tessera.files import put_whole
from tessera.model.devices import Device

DIRECTORY_VARIABLE = "TESSERA_SIM"
NVIDIA = "NVIDIA"
REPORTED_PREFIX = "NVIDIA-"
"""Discovery puts it before names in which the driver does not mention NVIDIA."""
CONTEXT_MIB = 300
"""What a context takes of a card before anything is allocated; on an H200 it is 518 MiB."""
COMPUTE: Mapping[str, tuple[str, int]] = {
    "B200": ("10.0", 148),
    "H200": ("9.0", 132),
    "H100 PCIe": ("9.0", 114),
    "H100": ("9.0", 132),
    "H20": ("9.0", 78),
    "L40S": ("8.9", 142),
    "L4": ("8.9", 58),
    "4090": ("8.9", 128),
    "A100": ("8.0", 108),
    "A10": ("8.6", 72),
    "A30": ("8.0", 56),
    "T4": ("7.5", 40),
    "V100": ("7.0", 80),
    "P100": ("6.0", 56),
}
"""Compute capability and multiprocessors by what a model's name has in it; the first that it has counts."""
OTHER_COMPUTE = ("8.0", 100)


def write_cards(directory: Path, devices: Iterable[Device], *, context_mib: int = CONTEXT_MIB) -> None:
    """Let there be these cards, of NVIDIA's the ones. Memory that processes hold already stays taken."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = (_line(device, context_mib) for device in devices if device.vendor == NVIDIA)
    put_whole(directory / "cards", "".join(lines).encode(), mode=0o644)


def _line(device: Device, context_mib: int) -> str:
    capability, units = next((known for part, known in COMPUTE.items() if part in device.model), OTHER_COMPUTE)
    name = device.model.removeprefix(REPORTED_PREFIX)
    fields = (device.uuid, name, device.memory_mib, context_mib, capability, units, device.numa)
    return "\t".join(map(str, fields)) + "\n"
