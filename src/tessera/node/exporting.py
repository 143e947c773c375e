"""What Prometheus reads on a node: its cards and who was given what, by HAMi's names, the new and the old.

What containers really use is in `use_exporting`.
"""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tessera.model.allocations import CardShare
from tessera.model.devices import Device
from tessera.node.cards import Cards
from tessera.node.families import CARD_LABELS, MIB, TILE_LABELS, gauge, pair
from tessera.node.tiles import Tile
from tessera.vendors.usage import CardUsage


class NodeCollector(Collector):
    """`usage` reads what the cards do now; a card that does not tell is left out, never shown as zero."""

    def __init__(
        self,
        node: str,
        version: str,
        cards: Cards,
        tiles: Callable[[], Iterable[Tile]],
        usage: Callable[[], dict[str, CardUsage]],
        strays: Callable[[], int],
        *,
        legacy: bool = True,
    ) -> None:
        self._node = node
        self._version = version
        self._cards = cards
        self._tiles = tiles
        self._usage = usage
        self._strays = strays
        self._legacy = legacy

    def collect(self) -> Iterator[Metric]:
        yield gauge("hami_build_info", "Which release runs.", ("version",), [((self._version,), 1.0)])
        usage = self._usage()
        shown = [(self._labels(card), usage[card.uuid]) for card in self._cards.inventory.devices if card.uuid in usage]
        yield from pair(
            "hami_host_gpu_memory_used_bytes",
            "HostGPUMemoryUsage",
            "Memory of the card in use, by whomever.",
            CARD_LABELS,
            [(labels, used.memory_used_mib * MIB) for labels, used in shown],
            legacy=self._legacy,
        )
        yield from pair(
            "hami_host_gpu_utilization_ratio",
            "HostCoreUtilization",
            "How busy the card is, 0 to 100.",
            CARD_LABELS,
            [(labels, used.busy_percent) for labels, used in shown if used.busy_percent is not None],
            legacy=self._legacy,
        )
        yield gauge(
            "tessera_card_healthy",
            "1 for a card that may be given to pods.",
            [new for new, _ in CARD_LABELS],
            [(self._labels(card), float(card.healthy)) for card in self._cards.inventory.devices],
        )
        given = dict(self._given())
        yield from pair(
            "hami_vgpu_memory_limit_bytes",
            "vGPU_device_memory_limit_in_bytes",
            "Memory that the container may use of the card.",
            TILE_LABELS,
            [(labels, share.memory_mib * MIB) for labels, share in given.items() if share.memory_mib],
            legacy=self._legacy,
        )
        yield gauge(
            "tessera_container_gpu_share_percent",
            "The share of the card's time that the container was given.",
            [new for new, _ in TILE_LABELS],
            [(labels, float(share.cores_percent)) for labels, share in given.items() if share.cores_percent],
        )
        yield gauge(
            "tessera_stray_containers",
            "Containers that hold tiles and were given no cards, or other cards.",
            ("node",),
            [((self._node,), float(self._strays()))],
        )

    def _labels(self, card: Device) -> tuple[str, ...]:
        return self._node, str(card.index), card.uuid, card.model

    def _given(self) -> Iterator[tuple[tuple[str, ...], CardShare]]:
        """A container that was given tiles twice is here twice. A figure of 0 is no limit."""
        for tile in self._tiles():
            for position, share in enumerate(tile.shares):
                labels = (tile.pod.namespace, tile.pod.name, tile.container, str(position), share.uuid)
                yield labels, share
