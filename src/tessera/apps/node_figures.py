"""What a node shows of itself and never changes: figures for Prometheus, the inventory for gRPC clients."""

import asyncio
from collections.abc import Callable

from prometheus_client import CollectorRegistry

import tessera
from tessera.apps.addresses import Address
from tessera.apps.node_state import NodeState
from tessera.apps.working import Work
from tessera.errors import DiscoveryFailed
from tessera.node.exporting import NodeCollector
from tessera.node.inventory_service import InventoryService, serve_inventory
from tessera.node.settings import NodeSettings
from tessera.node.use_exporting import UseCollector
from tessera.vendors.backends import CardSources, Watch
from tessera.vendors.usage import CardUsage

USAGE_EVERY_S = 5.0


class NodeFigures:
    """`strays` counts the containers that run with cards which their pod does not name."""

    def __init__(
        self, sources: CardSources, settings: NodeSettings, state: NodeState, strays: Callable[[], int]
    ) -> None:
        self._node = settings.node
        self._watch = sources.watch
        self._state = state
        self._usage: dict[str, CardUsage] = {}
        self.registry = CollectorRegistry()
        self.registry.register(
            NodeCollector(
                settings.node,
                tessera.__version__,
                state.cards,
                state.held,
                lambda: self._usage,
                strays,
                legacy=settings.legacy_metrics,
            )
        )
        self.registry.register(
            UseCollector(
                settings.node, state.uses, lambda: state.stray_processes.strays, legacy=settings.legacy_metrics
            )
        )

    def works(self, inventory: Address | None) -> list[Work]:
        """`inventory` is where gRPC clients ask; None if nowhere."""
        usage = [self._read_usage(self._watch)] if self._watch else []
        return [*usage, *([self._serve_inventory(inventory)] if inventory else [])]

    async def _serve_inventory(self, address: Address) -> None:
        cards, uses = self._state.cards, self._state.uses
        service = InventoryService(self._node, cards, self._state.held, cards.news, lambda: uses.uses)
        await serve_inventory(service, *address)

    async def _read_usage(self, watch: Watch) -> None:
        while True:
            try:
                self._usage = await asyncio.to_thread(watch.usage)
            except DiscoveryFailed:
                self._usage = {}
            await asyncio.sleep(USAGE_EVERY_S)
