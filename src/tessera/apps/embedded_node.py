"""One node of the embedded engine: its cards, told to the cluster as an agent tells them, and given to containers."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path

import msgspec

from tessera.apps.embedded_tiles import EmbeddedTiles, with_own_libraries
from tessera.apps.node_figures import NodeFigures
from tessera.apps.node_library import explain_unheard
from tessera.apps.working import Work
from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.sources import Additions
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.objects import Document
from tessera.model.catalogue import Catalogue
from tessera.node.agent_lease import AgentLease
from tessera.node.cards import Cards
from tessera.node.ending import Endings
from tessera.node.faults import follow_faults
from tessera.node.health import Health
from tessera.node.pods import Pod
from tessera.node.reporting import NodeReporter
from tessera.node.status_reporting import MANAGER, StatusReporter
from tessera.node.stray_processes import PodOf, StrayProcesses, tell_by_events
from tessera.node.strays import Strays
from tessera.node.terms import Permitted
from tessera.node.tiles import Tile
from tessera.node.using import ContainerUses
from tessera.vendors.backends import NVIDIA, CardSources
from tessera.vendors.guard import LIBRARY

CLEAR_UP_S = 10.0


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What a node asks of the rest: the latest document of a pod by its uid, and which pods have processes.

    `pods_known` returns when all pods are known. `pod_of` says whose a process is: the uid of a pod, "" for none, None
    where that cannot be seen.
    """

    pods_known: Callable[[], Awaitable[None]]
    find_pod: Callable[[str], Document | None]
    alive: Callable[[Collection[str]], set[str]]
    pod_of: PodOf


class EmbeddedNode:
    """`works` belong in a TaskGroup of the caller."""

    def __init__(
        self,
        client: Client,
        name: str,
        catalogue: Catalogue,
        sources: CardSources,
        directory: Path,
        around: Around,
        permitted: Permitted,
    ) -> None:
        self.name = name
        self._around = around
        self._watch = sources.watch
        self.cards = Cards(sources.backends, Health())
        self._tiles = EmbeddedTiles(
            name,
            catalogue,
            sources,
            directory,
            permitted,
            devices_of=self.cards.of_vendor,
            lingering=lambda: self._endings.lingering(),
        )
        self._endings = Endings(self._tiles.all, around.alive, self._is_known, told=lambda: self._lease.renew_soon())
        self.uses = ContainerUses(
            self._tiles.run, self._tiles.all, is_unfinished=lambda uid: bool(around.alive((uid,)))
        )
        self._reporter = NodeReporter(
            client, name, catalogue, self.cards, cdi="on", limits_trouble=self._explain_trouble
        )
        self.uses.news.listen(self._reporter.stir)
        self._recorder = Recorder(client, component=MANAGER, host=name)
        self.stray_processes = StrayProcesses(
            sources.processes,
            self.uses,
            tell=tell_by_events(self._recorder, name, lambda: self._reporter.node_uid),
            pod_of=around.pod_of,
        )
        strays = Strays(name, catalogue, self._find_pod)
        self.figures = NodeFigures(name, sources.watch, self, lambda: len(strays.among(self.held())))
        self._lease = AgentLease(client, name, self._endings, lambda: self._reporter.node_uid)
        self._statuses = StatusReporter(client, name, self.cards, self.held, lambda: self._reporter.node_uid)
        if driver := sources.driver:
            self.cards.news.listen(lambda: driver.know(self.cards.inventory.devices))
        self.cards.news.listen(lambda: self._tiles.know_cards(self.cards.inventory.devices))

    def works(self) -> list[Work]:
        own = [
            self.cards.run(),
            self._reporter.nodes.run(),
            self._reporter.run(),
            self._lease.run(),
            self._tiles.serve(),
            self._recorder.run(),
            self._statuses.statuses.run(),
            *self.figures.works(),
        ]
        later = [self._endings.run(), self._statuses.run(), self._clear_up(), self.uses.run()]
        if self._watch is not None:
            own.append(follow_faults(self.cards, self._watch))
            later.append(self.stray_processes.run())
        return [*own, *map(self._once_known, later)]

    def shares(self) -> Mapping[str, tuple[int, int]]:
        """By resource: how many shares of cards there are, and how many of them are healthy."""
        return self._tiles.shares()

    async def prepare(self, pod: Frozen, container: str) -> Additions:
        """What the container is given when it starts. The pod may have got its cards since it was first seen."""
        latest = self._around.find_pod(pod["metadata"]["uid"]) or pod
        additions = await self._tiles.give(msgspec.convert(latest, Pod), container)
        self._statuses.stir()
        return with_own_libraries(additions, pod, container)

    def pod_changed(self, pod: Document | None) -> None:
        """A pod of this node is another one than before, or is gone."""
        if pod is not None:
            self._tiles.resize(pod)
        self._statuses.stir()

    def held(self) -> list[Tile]:
        """The tiles of pods that have not ended."""
        tiles = self._tiles.all()
        alive = self._around.alive({tile.pod.uid for tile in tiles})
        return [tile for tile in tiles if tile.pod.uid in alive]

    async def _clear_up(self) -> None:
        """Remove the tiles of pods whose end the scheduler knows of."""
        while True:
            for tile in self._tiles.all():
                if not self._is_known(tile.pod.uid) and self._endings.is_told(tile.pod.uid):
                    self._tiles.remove(tile)
            await asyncio.sleep(CLEAR_UP_S)

    async def _once_known(self, work: Work) -> None:
        """Before the pods are known, every one of them looks as if it had ended."""
        try:
            await self._around.pods_known()
        except asyncio.CancelledError:
            work.close()
            raise
        await work

    def _explain_trouble(self) -> str:
        """Cards without a driver run nothing that could exceed a limit."""
        if self._watch is None or not self.cards.of_vendor(NVIDIA):
            return ""
        if not self._tiles.has_library:
            return f"{LIBRARY} is not built, so containers are not kept within their limits; `make native` builds it"
        return explain_unheard(self.uses)

    def _find_pod(self, uid: str) -> Pod | None:
        found = self._around.find_pod(uid)
        return msgspec.convert(found, Pod) if found else None

    def _is_known(self, uid: str) -> bool:
        return self._around.find_pod(uid) is not None
