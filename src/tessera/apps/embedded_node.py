"""One node of the embedded engine: its cards, told to the cluster as an agent tells them, and given to containers."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path

import msgspec

from tessera.apps.embedded_tiles import EmbeddedTiles, driver_variables, joined
from tessera.apps.working import Work
from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.sources import Additions
from tessera.kube.client import Client
from tessera.kube.objects import Document
from tessera.kube.pods import Pod
from tessera.model.catalogue import Catalogue
from tessera.node.agent_lease import AgentLease
from tessera.node.cards import Cards
from tessera.node.ending import Endings
from tessera.node.faults import follow_faults
from tessera.node.health import Health
from tessera.node.reporting import NodeReporter
from tessera.vendors.backends import CardSources
from tessera.vendors.simulated_driver import write_cards

CLEAR_UP_S = 10.0


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What a node asks of the rest: the latest document of a pod by its uid, and which pods have processes.

    `pods_known` returns when all pods are known. `driver` is where the libraries of the simulated driver are, None for
    cards that have a real one.
    """

    pods_known: Callable[[], Awaitable[None]]
    find_pod: Callable[[str], Document | None]
    alive: Callable[[Collection[str]], set[str]]
    driver: Path | None = None


class EmbeddedNode:
    """`works` belong in a TaskGroup of the caller."""

    def __init__(
        self, client: Client, name: str, catalogue: Catalogue, sources: CardSources, directory: Path, around: Around
    ) -> None:
        self.name = name
        self._around = around
        self._watch = sources.watch
        self._simulated = directory / "sim"
        self.cards = Cards(sources.backends, Health())
        self._tiles = EmbeddedTiles(
            name,
            catalogue,
            sources,
            directory,
            devices_of=self.cards.of_vendor,
            lingering=lambda: self._endings.lingering(),
        )
        self._endings = Endings(self._tiles.all, around.alive, self._is_known, told=lambda: self._lease.renew_soon())
        self._reporter = NodeReporter(client, name, catalogue, self.cards, cdi="on")
        self._lease = AgentLease(client, name, self._endings, lambda: self._reporter.node_uid)
        self.cards.news.listen(self._write_cards)

    def works(self) -> list[Work]:
        own = [self.cards.run(), self._reporter.nodes.run(), self._reporter.run(), self._lease.run()]
        if self._watch is not None:
            own.append(follow_faults(self.cards, self._watch))
        return [*own, self._once_known(self._endings.run()), self._once_known(self._clear_up())]

    def shares(self) -> Mapping[str, tuple[int, int]]:
        """By resource: how many shares of cards there are, and how many of them are healthy."""
        return self._tiles.shares()

    async def prepare(self, pod: Frozen, container: str) -> Additions:
        """What the container is given when it starts. The pod may have got its cards since it was first seen."""
        latest = self._around.find_pod(pod["metadata"]["uid"]) or pod
        additions = await self._tiles.give(msgspec.convert(latest, Pod), container)
        if not additions.environment or self._around.driver is None:
            return additions
        variables = driver_variables(pod, container, self._around.driver, self._simulated)
        return joined(additions, Additions(environment=variables))

    def _write_cards(self) -> None:
        if self._around.driver is not None:
            write_cards(self._simulated, self.cards.inventory.devices)

    async def _clear_up(self) -> None:
        """Remove the tiles of pods whose end the scheduler knows of."""
        while True:
            for tile in self._tiles.all():
                if not self._is_known(tile.pod.uid) and self._endings.is_told(tile.pod.uid):
                    self._tiles.remove(tile.token)
            await asyncio.sleep(CLEAR_UP_S)

    async def _once_known(self, work: Work) -> None:
        """Before the pods are known, every one of them looks as if it had ended."""
        try:
            await self._around.pods_known()
        except asyncio.CancelledError:
            work.close()
            raise
        await work

    def _is_known(self, uid: str) -> bool:
        return self._around.find_pod(uid) is not None
