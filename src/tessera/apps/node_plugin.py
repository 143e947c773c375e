"""What the kubelet needs of us on a node, put together: plugins, starts, reports, endings, reconciliation."""

import asyncio
from collections.abc import Mapping

import structlog

from tessera.apps.node_library import limits_trouble
from tessera.apps.node_state import NodeState
from tessera.apps.working import Work
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.model.annotations.handshakes import HandshakeStyle
from tessera.model.annotations.registers import RegisterFormat
from tessera.model.catalogue import Catalogue, Vendor
from tessera.model.claims import CLAIMABLE
from tessera.node.agent_lease import AgentLease
from tessera.node.early import EarlyStarter
from tessera.node.ending import Endings
from tessera.node.kubelet import Kubelet
from tessera.node.pid_service import serve_pids
from tessera.node.plugin import EarlyPlugin, TilePlugin
from tessera.node.plugin_server import PluginServer
from tessera.node.preparing import Preparer
from tessera.node.reconciling import Reconciliation
from tessera.node.reporting import NodeReporter
from tessera.node.resizing import Resizer
from tessera.node.run_directory import RunDirectory
from tessera.node.settings import NodeSettings
from tessera.node.starting import Starter
from tessera.node.status_reporting import MANAGER, StatusReporter
from tessera.node.stray_processes import tell_by_events
from tessera.node.strays import Strays
from tessera.node.tile_store import TileStore
from tessera.node.tiles import CLAIM_TILES, TileKind, claim_tiles_of, judge_tiles, tiles_of
from tessera.vendors.backends import NVIDIA, CardSources
from tessera.vendors.reporting import in_form

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LOOK_AGAIN_S = 0.5


class NodePlugin:
    """One process of a node has this part: it writes the tiles."""

    def __init__(self, client: Client, catalogue: Catalogue, sources: CardSources, settings: NodeSettings) -> None:
        self._node = node = settings.node
        self._store = store = TileStore(settings.state_dir, settings.cdi_dir)
        self._recorder = Recorder(client, component=MANAGER, host=node)
        tell_stray = tell_by_events(self._recorder, node, lambda: self._reporter.node_uid)
        self.state = state = NodeState(client, sources, settings, store, tell_stray=tell_stray)
        self._run = run = RunDirectory(settings.run_dir)
        run.make()
        state.cards.news.listen(self._make_card_files)
        pods = state.pods
        if driver := sources.driver:
            state.cards.news.listen(lambda: driver.know(state.cards.inventory.devices))
        self._kubelet = Kubelet(settings.kubelet_dir)
        self._endings = Endings(
            lambda: tuple(store), state.groups.alive, pods.is_known, told=lambda: self._lease.renew_soon()
        )
        pods.informer.subscribe(self._endings.pod_changed)
        preparer = Preparer(
            node,
            catalogue,
            sources.managers,
            store,
            run=run,
            hook_path=settings.hook_path,
            permitted=settings.permitted,
        )
        pods.informer.subscribe(Resizer(catalogue, preparer, store).pod_changed)
        self._starter = Starter(
            preparer, self._kubelet, store, find_pod=pods.find_holder, lingering=self._endings.lingering
        )
        self._reconciliation = Reconciliation(
            self._kubelet,
            store,
            self._starter,
            Strays(node, catalogue, pods.find),
            self._recorder,
            find_pod=pods.find,
            has_ended=self._endings.is_told,
            removed=state.cards.news.spread,
        )
        form = settings.register_format
        style = HandshakeStyle.SEED if form is RegisterFormat.SEED else HandshakeStyle.HAMI
        reported = in_form(catalogue, form)
        self._reporter = NodeReporter(
            client,
            node,
            reported,
            state.cards,
            style=style,
            cdi=settings.cdi,
            limits_trouble=lambda: limits_trouble(settings, state.uses) if state.cards.of_vendor(NVIDIA) else "",
        )
        state.uses.news.listen(self._reporter.stir)
        self._lease = AgentLease(client, node, self._endings, lambda: self._reporter.node_uid)
        self._statuses = StatusReporter(client, node, state.cards, state.held, lambda: self._reporter.node_uid)
        pods.informer.subscribe(lambda _: self._statuses.stir())
        vendors = [vendor for vendor in catalogue if vendor.name in sources.backends]
        claimable = [vendor for vendor in vendors if vendor.name == CLAIMABLE]
        self._kinds = [*map(tiles_of, vendors), *map(claim_tiles_of, claimable)]
        self._servers: dict[str, PluginServer] = {}

    def is_ready(self) -> bool:
        """The pods are known, and the kubelet knows the tiles of every vendor with cards here."""
        vendors = {device.vendor for device in self.state.cards.inventory.devices}
        wanted = {kind.resource for kind in self._kinds if kind.vendor.name in vendors}
        heard = {resource for resource, server in self._servers.items() if server.is_heard}
        return self.state.pods.is_synced and wanted <= heard

    def count_strays(self) -> int:
        return len(self._reconciliation.strays)

    def works(self) -> list[Work]:
        once_synced = self.state.pods.once_synced
        return [
            *self.state.works(),
            self._reporter.nodes.run(),
            self._reporter.run(),
            self._lease.run(),
            self._statuses.statuses.run(),
            once_synced(self._statuses.run()),
            self._recorder.run(),
            once_synced(self._endings.run()),
            once_synced(self._reconciliation.run()),
            serve_pids(self._run.socket),
            *map(self._serve, self._kinds),
        ]

    def _make_card_files(self) -> None:
        """In which the tenants of a card take turns; containers find their cards' alone."""
        try:
            self._run.make_cards(card.uuid for card in self.state.cards.of_vendor(NVIDIA))
        except OSError as error:
            log.warning("files of cards not made", directory=str(self._run.cards), error=str(error))

    async def _serve(self, kind: TileKind) -> None:
        """A vendor without cards has nothing to offer; they may come later, with a driver."""
        cards = self.state.cards
        await self.state.pods.informer.synced()
        await self._reporter.nodes.synced()
        while not cards.of_vendor(kind.vendor.name):
            await cards.news.upcoming().wait()
        while self._reporter.binds_late is None:
            await asyncio.sleep(LOOK_AGAIN_S)
        server = self._servers[kind.resource] = PluginServer(self._make_plugin(kind), self._kubelet)
        await server.run()

    def _make_plugin(self, kind: TileKind) -> TilePlugin:
        news, starter = self.state.cards.news, self._starter

        def health() -> Mapping[str, bool]:
            return CLAIM_TILES if kind.by_claim else self._judge(kind.vendor)

        if self._reporter.binds_late:
            return TilePlugin(kind, starter, self._store, health, news)
        early = EarlyStarter(starter, self._store, lambda: self.state.pods.informer)
        return EarlyPlugin(kind, early, starter, self._store, health, news)

    def _judge(self, vendor: Vendor) -> Mapping[str, bool]:
        resource = vendor.resources.count
        held = [tile for tile in self.state.held() if tile.resource == resource]
        card_of = {tile_id: uuid for tile in held for tile_id, uuid in tile.cards.items()}
        kept = [holder for holder in self._kubelet.kept_holders() or () if holder.resource == resource]
        given = {tile_id for holder in kept for tile_id in holder.ids}
        return judge_tiles(self.state.cards.of_vendor(vendor.name), card_of, given)
