"""What Prometheus reads on a node: its cards and who was given what, by HAMi's names, the new and the old.

What a container really uses is told by the library inside it; until that is there, only what it may use is known.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tessera.model.devices import Device
from tessera.node.cards import Cards
from tessera.node.tiles import Tile
from tessera.vendors.usage import CardUsage

MIB = 2**20
ZONE = "vGPU"
CARD_LABELS = (
    ("node", "nodeid"),
    ("device_index", "deviceidx"),
    ("device_uuid", "deviceuuid"),
    ("device_type", "devicetype"),
)
TILE_LABELS = (
    ("namespace", "podnamespace"),
    ("pod", "podname"),
    ("container", "ctrname"),
    ("vdevice_index", "vdeviceid"),
    ("device_uuid", "deviceuuid"),
)
Samples = Sequence[tuple[Sequence[str], float]]


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
        yield _gauge("hami_build_info", "Which release runs.", ("version",), [((self._version,), 1.0)])
        usage = self._usage()
        shown = [(self._labels(card), usage[card.uuid]) for card in self._cards.inventory.devices if card.uuid in usage]
        yield from self._pair(
            "hami_host_gpu_memory_used_bytes",
            "HostGPUMemoryUsage",
            "Memory of the card in use, by whomever.",
            CARD_LABELS,
            [(labels, used.memory_used_mib * MIB) for labels, used in shown],
        )
        yield from self._pair(
            "hami_host_gpu_utilization_ratio",
            "HostCoreUtilization",
            "How busy the card is, 0 to 100.",
            CARD_LABELS,
            [(labels, used.busy_percent) for labels, used in shown if used.busy_percent is not None],
        )
        yield _gauge(
            "tessera_card_healthy",
            "1 for a card that may be given to pods.",
            [new for new, _ in CARD_LABELS],
            [(self._labels(card), float(card.healthy)) for card in self._cards.inventory.devices],
        )
        yield from self._pair(
            "hami_vgpu_memory_limit_bytes",
            "vGPU_device_memory_limit_in_bytes",
            "Memory that the container may use of the card.",
            TILE_LABELS,
            [(labels, memory_mib * MIB) for labels, memory_mib in dict(self._limits()).items()],
        )
        yield _gauge(
            "tessera_stray_containers",
            "Containers that hold tiles and were given no cards, or other cards.",
            ("node",),
            [((self._node,), float(self._strays()))],
        )

    def _labels(self, card: Device) -> tuple[str, ...]:
        return self._node, str(card.index), card.uuid, card.model

    def _limits(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Where there is one. A container that was given tiles twice is here twice."""
        for tile in self._tiles():
            for position, share in enumerate(tile.shares):
                labels = (tile.pod.namespace, tile.pod.name, tile.container, str(position), share.uuid)
                if share.memory_mib:
                    yield labels, share.memory_mib

    def _pair(
        self, new: str, old: str, text: str, labels: Sequence[tuple[str, str]], samples: Samples
    ) -> Iterator[Metric]:
        yield _gauge(new, text, [name for name, _ in labels], samples)
        if self._legacy:
            yield _gauge(old, f"{text} The old name of {new}.", [name for _, name in labels], samples)


def _gauge(name: str, text: str, labels: Sequence[str], samples: Samples) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[*labels, "zone"])
    for values, figure in samples:
        family.add_metric([*values, ZONE], figure)
    return family
