"""Where a node's cards come from: NVML where there is a driver, or a description of cards that do not exist."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from tessera.model.catalogue import Catalogue, Vendor
from tessera.vendors.managers import NOTHING, Backend, CataloguedManager, DeviceManager, Inventory
from tessera.vendors.nvml import NvmlBackend
from tessera.vendors.nvml_watching import NvmlWatch
from tessera.vendors.simulated import SimulatedBackend, load_plan, parse_plan, simulate
from tessera.vendors.simulated_driver import SimulatedDriver
from tessera.vendors.simulated_watching import SimulatedWatch
from tessera.vendors.usage import CardProcess, CardUsage, Fault

NVIDIA = "NVIDIA"


class Watch(Protocol):
    """What cards do. All raise DiscoveryFailed where the driver does not answer, and the first two may block."""

    def usage(self) -> dict[str, CardUsage]: ...

    def processes(self) -> dict[str, tuple[CardProcess, ...]]: ...

    async def upcoming_faults(self) -> list[Fault]:
        """Those of the next moments; an empty list when nothing happened."""
        ...


class CardSources(msgspec.Struct, frozen=True):
    """By vendor. `watch` is None where nothing can run on cards, `driver` where they have a real one or none."""

    backends: Mapping[str, Backend]
    managers: Mapping[str, DeviceManager]
    watch: Watch | None = None
    driver: SimulatedDriver | None = None

    def processes(self) -> dict[str, tuple[CardProcess, ...]]:
        """Whom the driver lists, by UUID of the card; nobody, where there is none to ask. May block."""
        return self.watch.processes() if self.watch else {}


def find_cards(
    node: str,
    catalogue: Catalogue,
    *,
    plan: str = "",
    plan_file: Path | None = None,
    exists: Callable[[str], bool] = lambda path: Path(path).exists(),
    driver: SimulatedDriver | None = None,
) -> CardSources:
    """`exists` says whether the host has a file that would be mounted. `driver` is for simulated cards alone."""
    if plan_file is not None:
        return _simulated(catalogue, lambda: simulate(node, load_plan(plan_file), catalogue), exists, driver)
    if plan:
        inventory = simulate(node, parse_plan(plan), catalogue)
        return _simulated(catalogue, lambda: inventory, exists, driver)
    vendor = catalogue.by_name(NVIDIA)
    if vendor is None:
        return CardSources({}, {})
    backend = NvmlBackend(slots=vendor.slots, assumed_memory_mib=vendor.assumed_memory_mib)
    return CardSources({NVIDIA: backend}, {NVIDIA: CataloguedManager(vendor, backend, exists)}, NvmlWatch())


class _PlannedBackend:
    """Follows a description that may change."""

    def __init__(self, vendor: Vendor, read: Callable[[], Inventory]) -> None:
        self._vendor = vendor
        self._read = read

    def read(self) -> Inventory:
        return SimulatedBackend(self._read(), self._vendor).read()


def _simulated(
    catalogue: Catalogue, read: Callable[[], Inventory], exists: Callable[[str], bool], driver: SimulatedDriver | None
) -> CardSources:
    """Simulated cards have no device files."""
    names = dict.fromkeys(device.vendor for device in read().devices)
    vendors = [msgspec.structs.replace(vendor, device_paths=()) for vendor in catalogue if vendor.name in names]
    backends = {vendor.name: _PlannedBackend(vendor, read) for vendor in vendors}
    extras = {NVIDIA: driver.edits} if driver else {}
    managers = {
        vendor.name: CataloguedManager(vendor, backends[vendor.name], exists, extra=extras.get(vendor.name, NOTHING))
        for vendor in vendors
    }
    return CardSources(backends, managers, SimulatedWatch(driver.cards) if driver else None, driver)
