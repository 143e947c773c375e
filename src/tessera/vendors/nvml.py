"""NVIDIA's cards, found through NVML.

NVML is loaded when it is asked for, so that this module can be imported where there is no driver. A card that does not
answer is left out and told; when none does, or NVML itself does not, that is one DiscoveryFailed: an agent reports it
and tries again, it never dies of it. What a card or a driver merely does not support (MIG, NVLink, a distance) is no
error but an empty answer.
"""

import ctypes
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tessera.errors import DiscoveryFailed
from tessera.model.devices import DEFAULT_MODE, Device, Link, MigPlacement, MigProfile
from tessera.vendors.managers import Inventory
from tessera.vendors.nvlinks import LinkedCard, nvlinks_between, on_islands, read_nvlinks
from tessera.vendors.nvml_asking import ask_nvml, import_nvml, text_of

PCI_DEVICES = Path("/sys/bus/pci/devices")
NVLINK_SCORE = 100
NO_RECOVERY = 0

# NVML's distance between two cards, and what HAMi's hami.io/node-nvidia-score makes of it.
_DISTANCE_SCORES = {0: 60, 10: 50, 20: 40, 30: 30, 40: 20, 50: 10}
_MOST_PROFILE_INDEX = 0x12
_MIB = 2**20


class NvmlBackend:
    """Reads cards from NVML. `nvml` and `pci_devices` are the machine's own unless a test brings others."""

    def __init__(
        self,
        *,
        slots: int = 10,
        assumed_memory_mib: int = 0,
        nvml: Any = None,
        pci_devices: Path = PCI_DEVICES,
    ) -> None:
        self._slots = slots
        self._assumed_memory_mib = assumed_memory_mib
        self._nvml = nvml
        self._pci_devices = pci_devices

    def read(self) -> Inventory:
        """Every card of this machine that answers, with its island, and a link for every pair."""
        with self._open() as nvml:
            cards, complaints = self._read_cards(nvml)
            links = tuple(_read_links(nvml, cards))
        return Inventory(on_islands(cards), links, complaints)

    @contextmanager
    def _open(self) -> Generator[Any]:
        nvml = self._nvml if self._nvml is not None else import_nvml()
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            raise DiscoveryFailed(
                f"NVML did not start ({error}), expected an NVIDIA driver on this machine; install it or simulate cards"
            ) from None
        try:
            yield nvml
        except nvml.NVMLError as error:
            raise DiscoveryFailed(
                f"NVML did not answer ({error}), expected the list of cards; see nvidia-smi"
            ) from None
        finally:
            ask_nvml(nvml, nvml.nvmlShutdown, None)

    def _read_cards(self, nvml: Any) -> tuple[list[LinkedCard], tuple[str, ...]]:
        cards: list[LinkedCard] = []
        complaints: list[str] = []
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                cards.append(self._read_card(nvml, index))
            except DiscoveryFailed as error:
                complaints.append(str(error))
        if complaints and not cards:
            raise DiscoveryFailed(complaints[0])
        return cards, tuple(complaints)

    def _read_card(self, nvml: Any, index: int) -> LinkedCard:
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            bus_id = text_of(nvml.nvmlDeviceGetPciInfo(handle).busId).lower()
            nvlinks = read_nvlinks(nvml, handle)
            mig_mode = ask_nvml(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle)[0], None)
            infos = [] if mig_mode is None else _profile_infos(nvml, handle)
            device = Device(
                uuid=text_of(nvml.nvmlDeviceGetUUID(handle)),
                index=index,
                vendor="NVIDIA",
                model=_model_name(text_of(nvml.nvmlDeviceGetName(handle))),
                slots=_most_instances(infos) or self._slots if mig_mode else self._slots,
                memory_mib=self._memory_mib(nvml, handle, index),
                numa=self._numa(bus_id),
                mode="mig" if mig_mode else DEFAULT_MODE,
                mig_profiles=tuple(_read_profiles(nvml, handle, infos)),
                healthy=not ask_nvml(nvml, lambda: _recovery_action(nvml, handle), NO_RECOVERY),
            )
        except nvml.NVMLError as error:
            raise DiscoveryFailed(
                f"card {index} did not answer ({error}), expected its identity; see nvidia-smi"
            ) from None
        return LinkedCard(handle, device, bus_id, nvlinks)

    def _memory_mib(self, nvml: Any, handle: Any, index: int) -> int:
        """Cards that share the host's memory have no figure of their own; the site then says what to count with."""
        total = ask_nvml(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total), 0)
        if not total and not self._assumed_memory_mib:
            raise DiscoveryFailed(f"card {index} reports no memory, expected a size; set the memory to assume for it")
        return total // _MIB or self._assumed_memory_mib

    def _numa(self, bus_id: str) -> int:
        """NVML writes the domain with eight digits, sysfs with four. A machine without NUMA says -1."""
        domain, _, rest = bus_id.partition(":")
        try:
            return max(0, int((self._pci_devices / f"{domain[-4:]}:{rest}" / "numa_node").read_text()))
        except (OSError, ValueError):
            return 0


def _recovery_action(nvml: Any, handle: Any) -> int:
    """What the driver wants done before the card can be used: nothing, a reset, a reboot. Since driver 560."""
    (field,) = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    return int(field.value.uiVal) if field.nvmlReturn == nvml.NVML_SUCCESS else NO_RECOVERY


def _model_name(name: str) -> str:
    """As HAMi registers it, so that type selectors written for it match."""
    return name if name.startswith("NVIDIA") else f"NVIDIA-{name}"


def _read_links(nvml: Any, cards: list[LinkedCard]) -> Iterator[Link]:
    for position, one in enumerate(cards):
        for other in cards[position + 1 :]:
            level = ask_nvml(
                nvml, lambda a=one, b=other: nvml.nvmlDeviceGetTopologyCommonAncestor(a.handle, b.handle), None
            )
            score = _DISTANCE_SCORES.get(level, 0) + NVLINK_SCORE * nvlinks_between(one, other)
            yield Link(one.device.uuid, other.device.uuid, score)


def _most_instances(infos: list[Any]) -> int:
    """How many containers can share a card in MIG mode: as many as its smallest profile has instances."""
    return max((int(info.instanceCount) for info in infos), default=0)


def _profile_infos(nvml: Any, handle: Any) -> list[Any]:
    """The slices a card can be cut into; variants with extra engines ("+me", "+gfx") are left out."""
    infos: list[Any] = []
    for number in range(_MOST_PROFILE_INDEX):
        info = ask_nvml(nvml, lambda number=number: nvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, number), None)
        if info is not None and "+" not in text_of(info.name):
            infos.append(info)
    return infos


def _read_profiles(nvml: Any, handle: Any, infos: list[Any]) -> Iterator[MigProfile]:
    processors = max((int(info.multiprocessorCount) for info in infos), default=1) or 1
    for info in infos:
        yield MigProfile(
            name=text_of(info.name).removeprefix("MIG "),
            memory_mib=int(info.memorySizeMB),
            cores_percent=int(info.multiprocessorCount) * 100 // processors,
            slices=int(info.sliceCount),
            placements=ask_nvml(nvml, lambda info=info: _read_placements(nvml, handle, info), ()),
        )


def _read_placements(nvml: Any, handle: Any, info: Any) -> tuple[MigPlacement, ...]:
    count = ctypes.c_uint(0)
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, info.id, None, ctypes.byref(count))
    found = (nvml.c_nvmlGpuInstancePlacement_t * count.value)()
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, info.id, found, ctypes.byref(count))
    return tuple(MigPlacement(int(place.start), int(place.size)) for place in found[: count.value])
