"""Everything that runs on a node, put together once."""

import asyncio
from collections.abc import Mapping

import structlog
from prometheus_client import CollectorRegistry

import tessera
from tessera.apps.working import Work
from tessera.errors import DiscoveryFailed
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.informer import Informer
from tessera.kube.kinds import Selection
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.model.annotations.handshakes import HandshakeStyle
from tessera.model.annotations.registers import RegisterFormat
from tessera.model.catalogue import Catalogue, Vendor
from tessera.node.agent_lease import AgentLease
from tessera.node.cards import Cards
from tessera.node.early import EarlyStarter
from tessera.node.ending import Endings, PodGroups
from tessera.node.exporting import NodeCollector
from tessera.node.faults import follow_faults
from tessera.node.health import Health
from tessera.node.holders import Holder
from tessera.node.inventory_service import InventoryService, serve_inventory
from tessera.node.kubelet import Kubelet
from tessera.node.plugin import EarlyPlugin, TilePlugin
from tessera.node.plugin_server import PluginServer
from tessera.node.reconciling import Reconciliation
from tessera.node.reporting import NodeReporter
from tessera.node.settings import NodeSettings
from tessera.node.starting import Starter
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile, judge_tiles
from tessera.vendors.backends import CardSources, Watch
from tessera.vendors.reporting import in_form
from tessera.vendors.usage import CardUsage

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LOOK_AGAIN_S = 0.5
USAGE_EVERY_S = 5.0
BY_UID = "uid"
FINISHED = frozenset({"Succeeded", "Failed"})


class NodeAgent:
    def __init__(self, client: Client, catalogue: Catalogue, sources: CardSources, settings: NodeSettings) -> None:
        node = settings.node
        self._settings = settings
        self._sources = sources
        self._pods = Informer(client, CACHED_PODS, Selection(fields=f"spec.nodeName={node}"), indexes={BY_UID: _uid_of})
        self._kubelet = Kubelet(settings.kubelet_dir)
        self._store = TileStore(settings.state_dir, settings.cdi_dir)
        self._cards = Cards(sources.backends, Health(ignored=settings.ignored_xids))
        self._groups = groups = PodGroups(settings.cgroup_dir)
        self._endings = Endings(
            lambda: tuple(self._store), groups.alive, self._is_known, told=lambda: self._lease.renew_soon()
        )
        self._pods.subscribe(self._endings.pod_changed)
        self._starter = Starter(
            node,
            catalogue,
            sources.managers,
            self._kubelet,
            self._store,
            find_pod=self._find_holder,
            lingering=self._endings.lingering,
            hook_path=settings.hook_path,
        )
        self._recorder = Recorder(client, component="tessera-agent", host=node)
        self._reconciliation = Reconciliation(
            node,
            catalogue,
            self._kubelet,
            self._store,
            self._starter,
            self._recorder,
            find_pod=self._find_pod,
            has_ended=self._endings.is_told,
            removed=self._cards.news.spread,
        )
        form = settings.register_format
        style = HandshakeStyle.SEED if form is RegisterFormat.SEED else HandshakeStyle.HAMI
        self._reporter = NodeReporter(
            client, node, in_form(catalogue, form), self._cards, style=style, cdi=settings.cdi
        )
        self._lease = AgentLease(client, node, self._endings, lambda: self._reporter.node_uid)
        self._vendors = [vendor for vendor in catalogue if vendor.name in sources.backends]
        self._servers: dict[str, PluginServer] = {}
        self._usage: dict[str, CardUsage] = {}
        self.registry = CollectorRegistry()
        self.registry.register(
            NodeCollector(
                node,
                tessera.__version__,
                self._cards,
                self._held,
                lambda: self._usage,
                lambda: len(self._reconciliation.strays),
                legacy=settings.legacy_metrics,
            )
        )

    def is_ready(self) -> bool:
        """The pods are known, and every vendor with cards here is registered with the kubelet."""
        vendors = {device.vendor for device in self._cards.inventory.devices}
        registered = {vendor for vendor, server in self._servers.items() if server.is_registered}
        return self._pods.is_synced and vendors <= registered

    def works(self) -> list[Work]:
        watch = self._sources.watch
        return [
            self._pods.run(),
            self._cards.run(),
            self._reporter.nodes.run(),
            self._reporter.run(),
            self._lease.run(),
            self._recorder.run(),
            self._once_synced(self._endings.run()),
            self._once_synced(self._reconciliation.run()),
            *map(self._serve, self._vendors),
            *([follow_faults(self._cards, watch), self._read_usage(watch)] if watch else []),
        ]

    async def _once_synced(self, work: Work) -> None:
        """Before the pods are known, every one of them looks as if it had ended."""
        try:
            await self._pods.synced()
        except asyncio.CancelledError:
            work.close()
            raise
        await work

    async def serve_inventory(self, host: str, port: int) -> None:
        service = InventoryService(self._settings.node, self._cards, self._held, self._cards.news)
        await serve_inventory(service, host, port)

    def _make_plugin(self, vendor: Vendor) -> TilePlugin:
        news, starter = self._cards.news, self._starter

        def health() -> Mapping[str, bool]:
            return self._judge(vendor)

        if self._reporter.binds_late:
            return TilePlugin(vendor, starter, self._store, health, news)
        early = EarlyStarter(starter, self._store, lambda: self._pods)
        return EarlyPlugin(vendor, early, starter, self._store, health, news)

    def _held(self) -> list[Tile]:
        """The tiles of pods that have not ended, by the API's word or by the kernel's."""
        tiles = tuple(self._store)
        doubtful = {tile.pod.uid for tile in tiles if not self._is_unfinished(tile.pod.uid)}
        over = doubtful - self._groups.alive(doubtful)
        return [tile for tile in tiles if tile.pod.uid not in over]

    def _is_unfinished(self, uid: str) -> bool:
        pod = self._find_pod(uid)
        return pod is not None and pod.status.phase not in FINISHED

    def _judge(self, vendor: Vendor) -> Mapping[str, bool]:
        resource = vendor.resources.count
        card_of = {
            tile_id: uuid for tile in self._held() if tile.resource == resource for tile_id, uuid in tile.cards.items()
        }
        given = {
            one for holder in self._kubelet.kept_holders() or () if holder.resource == resource for one in holder.ids
        }
        return judge_tiles(self._cards.of_vendor(vendor.name), card_of, given)

    async def _serve(self, vendor: Vendor) -> None:
        """A vendor without cards has nothing to offer; they may come later, with a driver."""
        await self._pods.synced()
        await self._reporter.nodes.synced()
        while not self._cards.of_vendor(vendor.name):
            await self._cards.news.upcoming().wait()
        while self._reporter.binds_late is None:
            await asyncio.sleep(LOOK_AGAIN_S)
        server = self._servers[vendor.name] = PluginServer(self._make_plugin(vendor), self._kubelet)
        await server.run()

    async def _read_usage(self, watch: Watch) -> None:
        while True:
            try:
                self._usage = await asyncio.to_thread(watch.usage)
            except DiscoveryFailed:
                self._usage = {}
            await asyncio.sleep(USAGE_EVERY_S)

    def _find_holder(self, holder: Holder) -> Pod | None:
        if holder.pod_uid:
            return self._find_pod(holder.pod_uid)
        return self._pods.get(ObjectKey(holder.namespace, holder.pod))

    def _find_pod(self, uid: str) -> Pod | None:
        return next(iter(self._pods.find(BY_UID, uid)), None)

    def _is_known(self, uid: str) -> bool:
        return self._find_pod(uid) is not None


def _uid_of(pod: Pod) -> tuple[str, ...]:
    return (pod.metadata.uid or "",)
