"""The processes of a node. One agent does everything; a device plugin and an exporter share the same between them."""

from tessera.apps.addresses import Address, read_address, read_health_address
from tessera.apps.node_figures import NodeFigures
from tessera.apps.node_flags import FiguresFlags, KubeletFlags, NodeFlags
from tessera.apps.node_inventory import inventory_works
from tessera.apps.node_library import bring_library, host_has
from tessera.apps.node_options import read_settings, with_figures, with_kubelet
from tessera.apps.node_plugin import NodePlugin
from tessera.apps.node_state import NodeState
from tessera.apps.serving import Listener, make_app, serve_all
from tessera.apps.working import running
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.model.catalogue import Catalogue
from tessera.node.settings import NodeSettings
from tessera.node.strays import Strays
from tessera.node.tile_records import TileRecords
from tessera.vendors.backends import CardSources, find_cards
from tessera.vendors.loading import load_catalogue
from tessera.vendors.simulated_driver import driver_for_containers, find_libraries


class AgentFlags(KubeletFlags, FiguresFlags):
    """As click gives them."""


class DevicePluginFlags(KubeletFlags):
    health: str


async def run_agent(flags: AgentFlags) -> None:
    settings = with_figures(with_kubelet(read_settings(flags), flags), flags)
    catalogue = load_catalogue()
    sources = _find_cards_to_give(settings, flags, catalogue)
    metrics, inventory = _figures_addresses(flags)
    async with Client(find_access(flags["kubeconfig"])) as client:
        plugin = NodePlugin(client, catalogue, sources, settings)
        figures = NodeFigures(
            settings.node, sources.watch, plugin.state, plugin.count_strays, legacy=settings.legacy_metrics
        )
        app = make_app(is_ready=plugin.is_ready, metrics=figures.registry)
        works = [*plugin.works(), *figures.works(), *inventory_works(settings.node, plugin.state, inventory)]
        async with running(*works):
            await serve_all(Listener(app, *metrics))


async def run_device_plugin(flags: DevicePluginFlags) -> None:
    settings = with_kubelet(read_settings(flags), flags)
    catalogue = load_catalogue()
    sources = _find_cards_to_give(settings, flags, catalogue)
    health = read_health_address("--health", flags["health"])
    async with Client(find_access(flags["kubeconfig"])) as client:
        plugin = NodePlugin(client, catalogue, sources, settings)
        async with running(*plugin.works()):
            await serve_all(Listener(make_app(is_ready=plugin.is_ready), *health))


async def run_exporter(flags: FiguresFlags) -> None:
    """Ready when the pods are known: before that nobody can say whose tiles are over."""
    settings = with_figures(read_settings(flags), flags)
    catalogue = load_catalogue()
    sources = _find_cards(settings, flags, catalogue)
    metrics, inventory = _figures_addresses(flags)
    async with Client(find_access(flags["kubeconfig"])) as client:
        records = TileRecords(settings.state_dir)
        state = NodeState(client, sources, settings, records)
        strays = Strays(settings.node, catalogue, state.pods.find)
        figures = NodeFigures(
            settings.node, sources.watch, state, lambda: len(strays.among(records)), legacy=settings.legacy_metrics
        )
        app = make_app(is_ready=lambda: state.pods.is_synced, metrics=figures.registry)
        following = records.follow(state.cards.news.spread)
        works = [*state.works(), *figures.works(), *inventory_works(settings.node, state, inventory)]
        async with running(*works, following):
            await serve_all(Listener(app, *metrics))


def _find_cards_to_give(settings: NodeSettings, flags: NodeFlags, catalogue: Catalogue) -> CardSources:
    """What is refused leaves nothing on the node."""
    sources = _find_cards(settings, flags, catalogue)
    bring_library(settings)
    return sources


def _find_cards(settings: NodeSettings, flags: NodeFlags, catalogue: Catalogue) -> CardSources:
    """Simulated cards are given to containers with a simulated driver, and watched where that keeps them."""
    plan, plan_file = flags["simulate"], flags["simulate_file"]
    libraries = find_libraries() if plan or plan_file else None
    driver = driver_for_containers(libraries, settings.state_dir / "sim") if libraries else None
    exists = host_has(settings)
    return find_cards(settings.node, catalogue, plan=plan, plan_file=plan_file, exists=exists, driver=driver)


def _figures_addresses(flags: FiguresFlags) -> tuple[Address, Address | None]:
    return read_health_address("--metrics", flags["metrics"]), read_address("--inventory", flags["inventory"])
