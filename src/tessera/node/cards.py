"""The cards of this node as they are now: found by the vendors' backends, with the health that was judged for each.

A card that was there and does not answer any more is not gone: it is told as unhealthy, because pods hold it. Reading
hardware may block, so it happens in a thread.
"""

import asyncio
from collections.abc import Mapping

import msgspec
import structlog

from tessera.errors import DiscoveryFailed
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.devices import Device
from tessera.node.health import Health
from tessera.node.news import News
from tessera.vendors.managers import Backend, Inventory

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
ANSWER_S = 20.0


class Cards:
    """`backends` are by vendor. `news` tells of every change; `run` belongs in a TaskGroup of the caller."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        health: Health,
        *,
        every_s: float = 5.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._backends = backends
        self._health = health
        self._every_s = every_s
        self._clock = clock
        self._found: dict[str, Inventory] = {}
        self._silent: dict[str, frozenset[str]] = {}
        self._failures: dict[str, str] = {}
        self._answered: set[str] = set()
        self._readings: dict[str, asyncio.Future[Inventory]] = {}
        self._known = asyncio.Event()
        self.inventory = Inventory()
        self.reasons: Mapping[str, str] = {}
        self.silent: frozenset[str] = frozenset()
        """Cards that were there and are not told of any more; nobody knows what has become of them."""
        self.news = News()

    def of_vendor(self, vendor: str) -> list[Device]:
        return [device for device in self.inventory.devices if device.vendor == vendor]

    async def known(self) -> None:
        """Wait until every backend has answered once: a card that was never looked for is not gone."""
        await self._known.wait()

    async def run(self) -> None:
        while True:
            await self.look()
            await self._clock.sleep(self._every_s)

    async def look(self) -> None:
        """Read all backends once, and tell if anything is other than before."""
        for vendor, backend in self._backends.items():
            before = self._found.get(vendor, Inventory())
            try:
                inventory = await self._read(vendor, backend)
                complaint = "; ".join(inventory.complaints)
            except Exception as error:
                inventory, complaint = Inventory(), str(error) or type(error).__name__
            else:
                self._answered.add(vendor)
            self._silent[vendor] = _uuids(before) - _uuids(inventory)
            self._found[vendor] = _with_silent(before, inventory)
            self._note(vendor, complaint)
        self._judge()
        if self._answered >= self._backends.keys():
            self._known.set()

    async def _read(self, vendor: str, backend: Backend) -> Inventory:
        """A driver that hangs is waited for a while, and asked again only when it has answered."""
        reading = self._readings.get(vendor) or asyncio.ensure_future(asyncio.to_thread(backend.read))
        self._readings[vendor] = reading
        done, _ = await asyncio.wait((reading,), timeout=ANSWER_S)
        if not done:
            raise DiscoveryFailed(f"{vendor}: the driver has not answered for {ANSWER_S:.0f} s, expected its cards")
        del self._readings[vendor]
        return reading.result()

    def note_fault(self, uuid: str, fault: int) -> None:
        """A driver has told of a fault (an XID) on a card."""
        self._health.note(uuid, fault, self._clock.monotonic_s())
        self._judge()

    def _judge(self) -> None:
        now_s = self._clock.monotonic_s()
        devices, reasons = list[Device](), dict[str, str]()
        for inventory in self._found.values():
            for device in inventory.devices:
                reason = self._health.why_unhealthy(device, now_s)
                if reason:
                    reasons[device.uuid] = reason
                devices.append(msgspec.structs.replace(device, healthy=not reason))
        links = tuple(link for inventory in self._found.values() for link in inventory.links)
        inventory, silent = Inventory(tuple(devices), links), frozenset[str]().union(*self._silent.values())
        if (inventory, reasons, silent) == (self.inventory, self.reasons, self.silent):
            return
        _tell_changes(self.reasons, reasons)
        self.inventory, self.reasons, self.silent = inventory, reasons, silent
        self.news.spread()

    def _note(self, vendor: str, complaint: str) -> None:
        if complaint and self._failures.get(vendor) != complaint:
            log.warning("cards not read", vendor=vendor, error=complaint)
        self._failures[vendor] = complaint


def _with_silent(before: Inventory, now: Inventory) -> Inventory:
    """What is there now, and what was there before as cards that do not answer."""
    answering = {device.uuid for device in now.devices}
    silent = tuple(
        msgspec.structs.replace(device, healthy=False) for device in before.devices if device.uuid not in answering
    )
    if not silent:
        return now
    devices = tuple(sorted((*now.devices, *silent), key=lambda device: device.index))
    links = now.links or before.links
    return Inventory(devices, links, now.complaints)


def _uuids(inventory: Inventory) -> frozenset[str]:
    return frozenset(device.uuid for device in inventory.devices)


def _tell_changes(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    for uuid in sorted(now.keys() - before.keys()):
        log.warning("card unhealthy", uuid=uuid, why=now[uuid])
    for uuid in sorted(before.keys() - now.keys()):
        log.info("card healthy again", uuid=uuid, was=before[uuid])
