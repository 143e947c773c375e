"""What Prometheus reads of the containers on a node: what they use in truth, by what their processes say of themselves.

By HAMi's names where it has some. A container that has not used a card yet is not shown.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.node.families import TILE_LABELS, Samples, counter, gauge, pair
from tessera.node.regions import RegionCard
from tessera.node.stray_processes import StrayProcess
from tessera.node.using import CardUse, ContainerUses

NS_PER_S = 1e9
NEW_LABELS = [new for new, _ in TILE_LABELS]
OLD_LABELS = [old for _, old in TILE_LABELS]
PARTS = ("context", "module", "data", "offset")
"""What HAMi tells of memory, in labels; of modules and offsets nothing is known to us."""


class UseCollector(Collector):
    def __init__(
        self,
        node: str,
        uses: ContainerUses,
        strays: Callable[[], Sequence[StrayProcess]],
        *,
        legacy: bool = True,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._node = node
        self._uses = uses
        self._strays = strays
        self._legacy = legacy
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        uses = self._uses.uses
        yield from self._memory(uses)
        yield from self._time(uses)
        yield _by_card(
            "tessera_container_refusals", "Requests for memory over the limit.", uses, lambda of: of.refusals
        )
        yield gauge(
            "tessera_unreadable_regions",
            "Containers whose processes cannot be heard.",
            ("node",),
            [((self._node,), float(len(self._uses.unreadable)))],
        )
        yield from self._strange()

    def _memory(self, uses: Sequence[CardUse]) -> Iterator[Metric]:
        used = [(_labels(use), float(use.now.used_bytes)) for use in uses]
        text = "Memory that the container uses of the card."
        yield from pair(
            "hami_vgpu_memory_used_bytes",
            "vGPU_device_memory_usage_in_bytes",
            text,
            TILE_LABELS,
            used,
            legacy=self._legacy,
        )
        yield gauge("hami_container_device_memory_bytes", text, NEW_LABELS, used)
        if self._legacy:
            yield gauge(
                "Device_memory_desc_of_container",
                f"{text} The old name of hami_container_device_memory_bytes.",
                [*OLD_LABELS, *PARTS],
                [((*_labels(use), *_parts(use)), float(use.now.used_bytes)) for use in uses],
            )
        in_force = [(_labels(use), float(use.now.limit_bytes)) for use in uses if use.now.limit_bytes]
        yield gauge("tessera_container_memory_limit_bytes", "The limit in force.", NEW_LABELS, in_force)
        contexts = [(_labels(use), float(_context_bytes(use))) for use in uses]
        yield gauge("hami_vgpu_memory_context_bytes", "Of that, what contexts take.", NEW_LABELS, contexts)
        spilled = [(_labels(use), float(use.spilled_bytes)) for use in uses]
        yield gauge(
            "tessera_container_spilled_bytes", "Memory of the host in place of the card's.", NEW_LABELS, spilled
        )

    def _time(self, uses: Sequence[CardUse]) -> Iterator[Metric]:
        yield from pair(
            "hami_container_device_utilization_ratio",
            "Device_utilization_desc_of_container",
            "How much of the card's time the container has used of late, 0 to 100.",
            TILE_LABELS,
            [(_labels(use), use.busy_percent) for use in uses if use.busy_percent is not None],
            legacy=self._legacy,
        )
        now_s = self._clock.monotonic_s()
        yield from pair(
            "hami_container_last_kernel_elapsed_seconds",
            "Device_last_kernel_of_container",
            "How long ago the container last used the card.",
            TILE_LABELS,
            [(_labels(use), max(0.0, now_s - use.now.launched_ms / 1000)) for use in uses if use.now.launched_ms],
            legacy=self._legacy,
        )
        yield _by_card("tessera_container_gpu_seconds", "Time of the card used.", uses, lambda of: of.gpu_ns / NS_PER_S)
        yield _by_card(
            "tessera_container_throttled_seconds",
            "How long work has waited for the container's share.",
            uses,
            lambda of: of.throttled_ns / NS_PER_S,
        )
        shares: Samples = [(_labels(use), float(use.now.share_percent)) for use in uses if use.now.share_percent]
        yield gauge("tessera_container_gpu_limit_percent", "The share of time in force.", NEW_LABELS, shares)

    def _strange(self) -> Iterator[Metric]:
        by_card: dict[str, list[StrayProcess]] = {}
        for stray in self._strays():
            by_card.setdefault(stray.uuid, []).append(stray)
        labels = ("node", "device_uuid")
        yield gauge(
            "tessera_stray_memory_bytes",
            "Memory of the card that is in no container's account.",
            labels,
            [((self._node, uuid), float(sum(one.memory_bytes for one in some))) for uuid, some in by_card.items()],
        )
        yield gauge(
            "tessera_stray_processes",
            "Processes on the card that are in no container's account.",
            labels,
            [((self._node, uuid), float(len(some))) for uuid, some in by_card.items()],
        )


def _by_card(name: str, text: str, uses: Iterable[CardUse], figure: Callable[[RegionCard], float]) -> Metric:
    return counter(name, text, NEW_LABELS, [(_labels(use), float(figure(use.now))) for use in uses])


def _labels(use: CardUse) -> tuple[str, ...]:
    holder = use.holder
    return holder.pod.namespace, holder.pod.name, holder.container, str(use.position), use.share.uuid


def _context_bytes(use: CardUse) -> int:
    """Not more than is used: a process may be in the region without a context."""
    return min(use.now.used_bytes, use.now.context_bytes * use.processes)


def _parts(use: CardUse) -> tuple[str, ...]:
    context = _context_bytes(use)
    return str(context), "0", str(use.now.used_bytes - context), "0"
