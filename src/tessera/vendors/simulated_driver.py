"""The simulated CUDA driver: how it knows the cards of a machine, and how programs find it.

Programs that load the libraries of `native/sim` find a directory with the cards through TESSERA_SIM. What is written
there is read in `machine.c`, so the two say the same.
"""

import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import structlog

from tessera.files import put_whole
from tessera.model.devices import Device
from tessera.vendors.rendering import ContainerEdits, Mount

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
DIRECTORY_VARIABLE = "TESSERA_SIM"
LIBRARY_PATH = "LD_LIBRARY_PATH"
BUILT = Path(__file__).parents[3] / "build" / "native" / "sim"
"""Where `make native` builds the libraries; an installed package has none."""
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
SEARCHED = (f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/lib64")
"""Where the loaders of Debian's and of Red Hat's kin look for libraries that no cache and no variable names."""
SHARED_FILES = ("memory", "processes", "time", "faults")
"""What all processes of the machine write: memory that is taken, by whom, time that is used, and what befell cards."""
CARDS_IN_CONTAINER = "/var/lib/tessera/sim"
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


class SimulatedDriver(msgspec.Struct, frozen=True):
    """`cards` is the directory on this machine; `edits` are for every container with simulated cards of NVIDIA's."""

    cards: Path
    edits: ContainerEdits

    def know(self, devices: Iterable[Device]) -> None:
        """Programs that start from now on find these cards."""
        try:
            write_cards(self.cards, devices)
        except OSError as error:
            log.warning("simulated cards not written", directory=str(self.cards), error=str(error))


def find_libraries(directory: Path = BUILT) -> Path | None:
    """The directory, if all libraries of the driver are in it."""
    if all((directory / name).exists() for name in LIBRARIES):
        return directory
    log.info("no simulated driver for containers, `make native` builds it", expected=str(directory))
    return None


def driver_for_containers(libraries: Path, cards: Path) -> SimulatedDriver:
    """For containers with a file system of their own: the libraries lie where every loader looks by itself.

    So neither a cache of the loader must be made anew, nor a variable set that would take the place of an image's own.
    """
    mounts = [
        Mount(f"{directory}/{name}", str(libraries / name), read_only=True)
        for directory in SEARCHED
        for name in LIBRARIES
    ]
    mounts.append(Mount(CARDS_IN_CONTAINER, str(cards), read_only=False))
    return SimulatedDriver(
        cards, ContainerEdits(environment={DIRECTORY_VARIABLE: CARDS_IN_CONTAINER}, mounts=tuple(mounts))
    )


def driver_for_processes(libraries: Path, cards: Path) -> SimulatedDriver:
    """For containers that are processes in this machine's own file system, which is not ours to change."""
    environment = {DIRECTORY_VARIABLE: str(cards), LIBRARY_PATH: str(libraries)}
    return SimulatedDriver(cards, ContainerEdits(environment=environment))


def write_cards(directory: Path, devices: Iterable[Device], *, context_mib: int = CONTEXT_MIB) -> None:
    """Let there be these cards, of NVIDIA's the ones. Memory that processes hold already stays taken."""
    directory.mkdir(parents=True, exist_ok=True)
    for shared in map(directory.joinpath, SHARED_FILES):
        if not shared.exists():
            shared.touch()
            shared.chmod(0o666)  # containers run as anybody
    lines = (_line(device, context_mib) for device in devices if device.vendor == NVIDIA)
    put_whole(directory / "cards", "".join(lines).encode(), mode=0o644)


def _line(device: Device, context_mib: int) -> str:
    capability, units = next((known for part, known in COMPUTE.items() if part in device.model), OTHER_COMPUTE)
    name = device.model.removeprefix(REPORTED_PREFIX)
    fields = (device.uuid, name, device.memory_mib, context_mib, capability, units, device.numa)
    return "\t".join(map(str, fields)) + "\n"
