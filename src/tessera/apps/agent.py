"""`tessera run agent`: the process of each node. It tells the cluster its cards and prepares containers for them."""

import os
import socket
from pathlib import Path
from typing import TypedDict, Unpack

import click
import uvloop

from tessera.apps.addresses import read_address
from tessera.apps.node_agent import NodeAgent
from tessera.apps.serving import Listener, make_app, serve_all
from tessera.apps.working import running
from tessera.errors import InvalidRequest
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.model.annotations.registers import RegisterFormat
from tessera.node.runtimes import CdiChoice
from tessera.node.settings import NodeSettings
from tessera.vendors.backends import find_cards
from tessera.vendors.loading import load_catalogue
from tessera.vendors.rendering import DEFAULT_HOOK_PATH

FORMS = ("seed", "hami", "json")


class Flags(TypedDict):
    """As click gives them."""

    kubeconfig: Path | None
    node: str
    simulate: str
    simulate_file: Path | None
    kubelet_dir: Path
    cdi_dir: Path
    state_dir: Path
    cgroup_dir: Path
    hook_path: str
    register_format: str
    cdi: CdiChoice
    metrics: str
    legacy_metrics: bool
    inventory: str
    ignore_xid: tuple[int, ...]


@click.command("agent")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Which cluster; without it, as kubectl finds it.")
@click.option("--node", default="", help="The name of this node; without it NODE_NAME, else the host's name.")
@click.option("--simulate", default="", help='Simulated cards instead of real ones, such as "8xA100-SXM4-80GB".')
@click.option("--simulate-file", type=click.Path(path_type=Path), help="A file that describes them; read anew.")
@click.option("--kubelet-dir", type=click.Path(path_type=Path), default="/var/lib/kubelet", show_default=True)
@click.option("--cdi-dir", type=click.Path(path_type=Path), default="/var/run/cdi", show_default=True)
@click.option("--state-dir", type=click.Path(path_type=Path), default="/var/lib/tessera", show_default=True)
@click.option("--cgroup-dir", type=click.Path(path_type=Path), default="/sys/fs/cgroup", show_default=True)
@click.option("--hook-path", default=DEFAULT_HOOK_PATH, show_default=True, help="Where the host keeps vgpu/.")
@click.option("--register-format", type=click.Choice(FORMS), default="seed", show_default=True)
@click.option("--cdi", type=click.Choice(("auto", "on", "off")), default="auto", help="Does the runtime have CDI?")
@click.option("--metrics", default="127.0.0.1:9394", show_default=True, help="Where to serve /metrics and health.")
@click.option("--legacy-metrics/--no-legacy-metrics", default=True, show_default=True, help="HAMi's old names too.")
@click.option("--inventory", default="", help="Where to serve the inventory over gRPC.")
@click.option("--ignore-xid", type=int, multiple=True, help="A fault of NVIDIA's driver to overlook; may be repeated.")
def command(**flags: Unpack[Flags]) -> None:
    """Tell the cluster this node's cards, and give them to containers."""
    uvloop.run(run(flags))


async def run(flags: Flags) -> None:
    node = flags["node"] or os.environ.get("NODE_NAME", "") or socket.gethostname().lower()
    if flags["simulate"] and flags["simulate_file"]:
        raise InvalidRequest("--simulate and --simulate-file are both given, expected one of them; drop one")
    settings = NodeSettings(
        node=node,
        kubelet_dir=flags["kubelet_dir"],
        cdi_dir=flags["cdi_dir"],
        state_dir=flags["state_dir"],
        cgroup_dir=flags["cgroup_dir"],
        hook_path=flags["hook_path"],
        register_format=RegisterFormat(flags["register_format"]),
        cdi=flags["cdi"],
        legacy_metrics=flags["legacy_metrics"],
        ignored_xids=frozenset(flags["ignore_xid"]),
    )
    catalogue = load_catalogue()
    sources = find_cards(node, catalogue, plan=flags["simulate"], plan_file=flags["simulate_file"])
    metrics, inventory = read_address("--metrics", flags["metrics"]), read_address("--inventory", flags["inventory"])
    if metrics is None:
        raise InvalidRequest("--metrics is empty, expected an address such as 127.0.0.1:9394, where health is asked")
    async with Client(find_access(flags["kubeconfig"])) as client:
        agent = NodeAgent(client, catalogue, sources, settings)
        app = make_app(is_ready=agent.is_ready, metrics=agent.registry)
        async with running(*agent.works(), *([agent.serve_inventory(*inventory)] if inventory else [])):
            await serve_all(Listener(app, *metrics))
