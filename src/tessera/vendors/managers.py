"""The one interface behind which every vendor's cards stand: find them, hand them to a container, say how they connect.

A backend only has to find cards; the rest follows from the vendor's data. So a new vendor needs a file and a way to
count its cards, and a vendor with an odd runtime may still bring a manager of its own.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from tessera.errors import DiscoveryFailed
from tessera.model.catalogue import Vendor
from tessera.model.devices import Device, Link
from tessera.vendors.rendering import AllocationRequest, ContainerEdits, render_edits

NOTHING = ContainerEdits()


class Inventory(msgspec.Struct, frozen=True):
    """What a backend found on this node, and a sentence for each card that did not answer."""

    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = ()
    complaints: tuple[str, ...] = ()


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """How the cards of one node lie: fast islands and NUMA nodes as groups of UUIDs, and the links between pairs."""

    islands: tuple[tuple[str, ...], ...] = ()
    numa_nodes: tuple[tuple[int, tuple[str, ...]], ...] = ()
    links: tuple[Link, ...] = ()


class Backend(Protocol):
    """A way to find cards. Raises DiscoveryFailed when the hardware or its driver does not answer."""

    def read(self) -> Inventory: ...


class DeviceManager(Protocol):
    def discover(self) -> tuple[Device, ...]: ...

    def memory_mib(self, uuid: str) -> int: ...

    def allocate(self, request: AllocationRequest) -> ContainerEdits: ...

    def topology(self) -> Topology: ...


class CataloguedManager:
    """The manager of any vendor that has a file, around a backend that finds its cards.

    `exists` says whether the host has a file that would be mounted. `extra` is for every container with cards.
    """

    def __init__(
        self,
        vendor: Vendor,
        backend: Backend,
        exists: Callable[[str], bool] = lambda _: True,
        *,
        extra: ContainerEdits = NOTHING,
    ) -> None:
        self._vendor = vendor
        self._backend = backend
        self._exists = exists
        self._extra = extra
        self._known: dict[str, Device] = {}

    def discover(self) -> tuple[Device, ...]:
        return self._read().devices

    def memory_mib(self, uuid: str) -> int:
        """Of a card of this node; 0 for one that is not here."""
        self._know((uuid,))
        return self._known[uuid].memory_mib if uuid in self._known else 0

    def allocate(self, request: AllocationRequest) -> ContainerEdits:
        """The edits for one container."""
        self._know(share.uuid for share in request.shares)
        for share in request.shares:
            if share.vendor != self._vendor.name:
                raise DiscoveryFailed(
                    f'{request.pod}: card "{share.uuid}" is of vendor "{share.vendor}", expected "{self._vendor.name}"'
                )
            if share.uuid not in self._known:
                raise DiscoveryFailed(
                    f'{request.pod}: card "{share.uuid}" is not on this node, expected one of'
                    f" {', '.join(sorted(self._known)) or 'none'}; the allocation is for other hardware"
                )
        edits = render_edits(self._vendor, request, self._known, self._exists)
        return edits.joined(self._extra) if request.shares else edits

    def topology(self) -> Topology:
        inventory = self._read()
        islands: dict[str, list[str]] = {}
        numa_nodes: dict[int, list[str]] = {}
        for device in inventory.devices:
            numa_nodes.setdefault(device.numa, []).append(device.uuid)
            if device.island:
                islands.setdefault(device.island, []).append(device.uuid)
        return Topology(
            islands=tuple(tuple(uuids) for _, uuids in sorted(islands.items())),
            numa_nodes=tuple((numa, tuple(uuids)) for numa, uuids in sorted(numa_nodes.items())),
            links=inventory.links,
        )

    def _know(self, uuids: Iterable[str]) -> None:
        """Cards seen before are not looked for again: this is on the way of a start."""
        if any(uuid not in self._known for uuid in uuids):
            self._read()

    def _read(self) -> Inventory:
        inventory = self._backend.read()
        self._known = {device.uuid: device for device in inventory.devices}
        return inventory
