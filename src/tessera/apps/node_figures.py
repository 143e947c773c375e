"""What a node shows of itself to Prometheus, and never changes."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from prometheus_client import CollectorRegistry

import tessera
from tessera.apps.working import Work
from tessera.errors import DiscoveryFailed
from tessera.node.cards import Cards
from tessera.node.exporting import NodeCollector
from tessera.node.stray_processes import StrayProcesses
from tessera.node.tiles import Tile
from tessera.node.use_exporting import UseCollector
from tessera.node.using import ContainerUses
from tessera.vendors.backends import Watch
from tessera.vendors.usage import CardUsage

USAGE_EVERY_S = 5.0


class NodeStanding(Protocol):
    """A node as it is now; `held` are the tiles of pods that have not ended."""

    @property
    def cards(self) -> Cards: ...

    @property
    def uses(self) -> ContainerUses: ...

    @property
    def stray_processes(self) -> StrayProcesses: ...

    def held(self) -> list[Tile]: ...


class NodeFigures:
    """`strays` counts the containers that run with cards which their pod does not name."""

    def __init__(
        self, node: str, watch: Watch | None, state: NodeStanding, strays: Callable[[], int], *, legacy: bool = True
    ) -> None:
        self._watch = watch
        self._usage: dict[str, CardUsage] = {}
        self.registry = CollectorRegistry()
        self.registry.register(
            NodeCollector(
                node, tessera.__version__, state.cards, state.held, lambda: self._usage, strays, legacy=legacy
            )
        )
        self.registry.register(UseCollector(node, state.uses, lambda: state.stray_processes.strays, legacy=legacy))

    def works(self) -> list[Work]:
        return [self._read_usage(self._watch)] if self._watch else []

    async def _read_usage(self, watch: Watch) -> None:
        while True:
            try:
                self._usage = await asyncio.to_thread(watch.usage)
            except DiscoveryFailed:
                self._usage = {}
            await asyncio.sleep(USAGE_EVERY_S)
