"""What every process of a node goes by: its cards, its pods, and who holds tiles."""

from collections.abc import Callable, Iterable

from tessera.apps.node_pods import NodePods
from tessera.apps.working import Work
from tessera.kube.client import Client
from tessera.node.cards import Cards
from tessera.node.ending import PodGroups
from tessera.node.faults import follow_faults
from tessera.node.health import Health
from tessera.node.run_directory import RunDirectory
from tessera.node.settings import NodeSettings
from tessera.node.stray_processes import StrayProcess, StrayProcesses
from tessera.node.tiles import Tile
from tessera.node.using import ContainerUses
from tessera.vendors.backends import CardSources


class NodeState:
    """`tiles` are those on disk, whether this process writes them or another. `works` keep the rest up to date.

    `tell_stray` is called for each process that is on a card and in no container's account.
    """

    def __init__(
        self,
        client: Client,
        sources: CardSources,
        settings: NodeSettings,
        tiles: Iterable[Tile],
        *,
        tell_stray: Callable[[StrayProcess], None] = lambda _: None,
    ) -> None:
        self._watch = sources.watch
        self._tiles = tiles
        self.pods = NodePods(client, settings.node)
        self.uses = ContainerUses(
            RunDirectory(settings.run_dir), lambda: tuple(tiles), is_unfinished=self.pods.is_unfinished
        )
        self.stray_processes = StrayProcesses(sources.processes, self.uses, tell=tell_stray)
        self.cards = Cards(sources.backends, Health(ignored=settings.ignored_xids))
        self.groups = PodGroups(settings.cgroup_dir)

    def held(self) -> list[Tile]:
        """The tiles of pods that have not ended, by the API's word or by the kernel's."""
        tiles = tuple(self._tiles)
        doubtful = {tile.pod.uid for tile in tiles if not self.pods.is_unfinished(tile.pod.uid)}
        over = doubtful - self.groups.alive(doubtful)
        return [tile for tile in tiles if tile.pod.uid not in over]

    def works(self) -> list[Work]:
        watched = [follow_faults(self.cards, self._watch), self.stray_processes.run()] if self._watch else []
        return [self.pods.informer.run(), self.cards.run(), self.pods.once_synced(self.uses.run()), *watched]
