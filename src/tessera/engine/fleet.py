"""Every node and card in flat arrays, one row per node and one column per card position.

A fit over thousands of nodes is then a few vector operations. Cards that are alike in everything that does not change
share a `Kind`; column values say what is still free. Each change of a row stamps it with a growing sequence number, so
that whoever caches something about rows can tell which of them to look at again.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from tessera.engine.arrays import Bools, Floats, Ints, Longs, Rows
from tessera.engine.wiring import Wiring, Wirings
from tessera.errors import InvalidInventory
from tessera.model.devices import Device, Host, Node

MAX_CARDS_PER_NODE = 256
MAX_CARD_MEMORY_MIB = 2**24  # 16 TiB; a hundred times that still fits the arrays' integers
_LARGEST = 2**31 - 1


class Kind(msgspec.Struct, frozen=True):
    """What equal cards have in common. Kind 0 stands for "no card here"."""

    vendor: str = ""
    model: str = ""
    mode: str = ""
    slots: int = 0
    memory_mib: int = 0
    cores_percent: int = 0


class Fleet:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.hosts: list[Host] = []
        self.uuids: list[tuple[str, ...]] = []
        self.row_of: dict[str, int] = {}
        self.kinds: list[Kind] = [Kind()]
        self.kind_slots: Ints = np.ones(1, np.int32)  # one, not zero, for kind 0: others divide by it
        self.kind_memory: Ints = np.ones(1, np.int32)
        self.kind_cores: Ints = np.ones(1, np.int32)
        self._kind_ids: dict[Kind, int] = {self.kinds[0]: 0}
        self._patterns: list[Ints] = [np.zeros((0, 0), np.int32)]
        self._pattern_ids: dict[bytes, int] = {}
        self._links: Floats = np.zeros((0, 0, 0), np.float32)
        self._wirings = Wirings()
        self._vacant: list[int] = []
        self.layout = 0  # grows whenever arrays are replaced or a kind is added
        self.sequence = 0
        self.width = 0
        self._allocate(rows=0, width=0)
        self._name_rank: Longs | None = None

    def _allocate(self, rows: int, width: int) -> None:
        cards = (rows, width)
        self.kind: Ints = np.zeros(cards, np.int32)
        self.free_slots: Ints = np.zeros(cards, np.int32)
        self.free_memory: Ints = np.zeros(cards, np.int32)
        self.free_cores: Ints = np.zeros(cards, np.int32)
        self.healthy: Bools = np.zeros(cards, np.bool_)
        self.cordoned: Bools = np.zeros(cards, np.bool_)
        self.numa: Ints = np.zeros(cards, np.int32)
        self.link_pattern: Ints = np.zeros(rows, np.int32)
        self.wiring: Ints = np.zeros(rows, np.int32)
        self.alive: Bools = np.zeros(rows, np.bool_)
        self.cpu_total: Longs = np.zeros(rows, np.int64)
        self.cpu_free: Longs = np.zeros(rows, np.int64)
        self.memory_total: Longs = np.zeros(rows, np.int64)
        self.memory_free: Longs = np.zeros(rows, np.int64)
        self.pods_free: Longs = np.zeros(rows, np.int64)
        self.changed_at: Longs = np.full(rows, -1, np.int64)
        self.host_changed_at: Longs = np.zeros(rows, np.int64)
        self.width = width
        self.layout += 1

    def __len__(self) -> int:
        """How many rows the arrays have; rows without a node are not `alive`."""
        return len(self.names)

    @property
    def name_rank(self) -> Longs:
        """Each row's position among the names in order: what breaks ties."""
        if self._name_rank is None:
            order = np.array(sorted(range(len(self)), key=self.names.__getitem__), np.int64)
            self._name_rank = np.empty(len(order), np.int64)
            self._name_rank[order] = np.arange(len(order))
        return self._name_rank

    def put(self, node: Node) -> int:
        """Add a node, or replace what is known of it; all of its cards become free. Returns its row."""
        check_node(node)
        row = self.row_of.get(node.name)
        if row is None:
            row = self._new_row(node.name)
        if len(node.devices) > self.width:
            self._grow(len(self), len(node.devices))
        self._fill_cards(row, node)
        self._fill_host(row, node.host)
        self.touch(row)
        self.host_changed_at[row] = self.sequence
        return row

    def remove(self, name: str) -> int:
        """Forget a node. Its row stays, not alive, until another node takes it. Returns the row."""
        row = self.row_of.pop(name)
        self.alive[row] = False
        for cards in (self.kind, self.free_slots, self.free_memory, self.free_cores):
            cards[row] = 0
        self.healthy[row] = False
        self.uuids[row] = ()
        self._vacant.append(row)
        self.touch(row)
        return row

    def touch(self, row: int) -> None:
        self.sequence += 1
        self.changed_at[row] = self.sequence

    def column_of(self, row: int, uuid: str) -> int | None:
        uuids = self.uuids[row]
        return uuids.index(uuid) if uuid in uuids else None

    def _new_row(self, name: str) -> int:
        if self._vacant:
            row = self._vacant.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            if row >= len(self.alive):
                self._grow(max(16, row + row // 2), self.width)
            self.names.append(name)
            self.hosts.append(Host(cpu_milli=0, memory_bytes=0))
            self.uuids.append(())
        self.row_of[name] = row
        self._name_rank = None
        return row

    def _grow(self, rows: int, width: int) -> None:
        rows, width = max(rows, len(self.alive)), max(width, self.width)
        before = dict(vars(self))
        old_rows, old_width = len(self.alive), self.width
        self._allocate(rows, width)
        for name in ("kind", "free_slots", "free_memory", "free_cores", "healthy", "cordoned", "numa"):
            getattr(self, name)[:old_rows, :old_width] = before[name]
        for name in (
            "alive",
            "link_pattern",
            "wiring",
            "cpu_total",
            "cpu_free",
            "memory_total",
            "memory_free",
            "pods_free",
            "changed_at",
            "host_changed_at",
        ):
            getattr(self, name)[:old_rows] = before[name]

    def _fill_cards(self, row: int, node: Node) -> None:
        for cards in (self.kind, self.free_slots, self.free_memory, self.free_cores):
            cards[row] = 0
        self.healthy[row] = False
        self.cordoned[row] = False
        for column, device in enumerate(node.devices):
            self.kind[row, column] = self._kind_id(device)
            self.free_slots[row, column] = device.slots
            self.free_memory[row, column] = device.memory_mib
            self.free_cores[row, column] = device.cores_percent
            self.healthy[row, column] = device.healthy
            self.cordoned[row, column] = device.uuid in node.cordoned_uuids
            self.numa[row, column] = device.numa
        self.uuids[row] = tuple(device.uuid for device in node.devices)
        self.wiring[row] = self._wirings.number_of(node.devices)
        self._fill_links(row, node)

    def _fill_links(self, row: int, node: Node) -> None:
        links: Ints = np.zeros((len(node.devices), len(node.devices)), np.int32)
        for link in node.links:
            one, other = self.column_of(row, link.one), self.column_of(row, link.other)
            if one is not None and other is not None:
                links[one, other] = links[other, one] = link.score
        if not links.any():
            self.link_pattern[row] = 0
            return
        known = self._pattern_ids.setdefault(links.tobytes(), len(self._patterns))
        if known == len(self._patterns):
            self._patterns.append(links)
        self.link_pattern[row] = known

    @property
    def links(self) -> Floats:
        """The links between cards for every pattern that nodes have, as wide as the widest node."""
        if self._links.shape != (len(self._patterns), self.width, self.width):
            self._links = np.zeros((len(self._patterns), self.width, self.width), np.float32)
            for number, links in enumerate(self._patterns):
                self._links[number, : len(links), : len(links)] = links
        return self._links

    def wirings(self, rows: Rows) -> Wiring:
        """The ids, islands and bandwidths of the cards of these rows."""
        return self._wirings.of(self.wiring[rows], self.width)

    def _fill_host(self, row: int, host: Host) -> None:
        self.hosts[row] = host
        self.alive[row] = True
        self.cpu_total[row] = self.cpu_free[row] = host.cpu_milli
        self.memory_total[row] = self.memory_free[row] = host.memory_bytes
        self.pods_free[row] = host.pods

    def _kind_id(self, device: Device) -> int:
        kind = Kind(device.vendor, device.model, device.mode, device.slots, device.memory_mib, device.cores_percent)
        known = self._kind_ids.get(kind)
        if known is None:
            known = self._kind_ids[kind] = len(self.kinds)
            self.kinds.append(kind)
            self.kind_slots = np.append(self.kind_slots, np.int32(kind.slots))
            self.kind_memory = np.append(self.kind_memory, np.int32(kind.memory_mib))
            self.kind_cores = np.append(self.kind_cores, np.int32(kind.cores_percent))
            self.layout += 1
        return known


def check_node(node: Node) -> None:
    """Refuse a node whose report cannot be true, before anything of it is taken over."""
    where = f"node {node.name}"
    if len(node.devices) > MAX_CARDS_PER_NODE:
        raise InvalidInventory(f"{where} reports {len(node.devices)} cards, expected at most {MAX_CARDS_PER_NODE}")
    _check_uuids(where, [device.uuid for device in node.devices])
    for device in node.devices:
        card = f"{where}: card {device.uuid}"
        _check_range(card, "slots", device.slots, 1, 10_000)
        _check_range(card, "memory_mib", device.memory_mib, 1, MAX_CARD_MEMORY_MIB)
        _check_range(card, "cores_percent", device.cores_percent, 1, 10_000)
        _check_range(card, "numa", device.numa, -1)
    for link in node.links:
        _check_range(f"{where}: link {link.one} to {link.other}", "score", link.score, 0)
    _check_range(where, "cpu_milli", node.host.cpu_milli, 0, 2**62)
    _check_range(where, "memory_bytes", node.host.memory_bytes, 0, 2**62)
    _check_range(where, "pods", node.host.pods, 0)


def _check_uuids(where: str, uuids: Sequence[str]) -> None:
    seen: set[str] = set()
    for uuid in uuids:
        if not uuid or uuid in seen:
            what = f'the UUID "{uuid}" twice' if uuid else "a card without a UUID"
            raise InvalidInventory(f"{where} reports {what}, expected one card per UUID")
        seen.add(uuid)


def _check_range(where: str, field: str, value: int, low: int, high: int = _LARGEST) -> None:
    if not low <= value <= high:
        raise InvalidInventory(f"{where} reports {field} {value}, expected {low} to {high}")
