"""The flags of the processes of a node, in three groups: what all of them have, the kubelet's, and the figures'.

They are read in `node_options`. A default that stands here is that of the settings.
"""

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from tessera.apps.flags import KUBECONFIG, SPILL_PERCENT, CommandT, with_flags
from tessera.model.cores_policy import POLICIES, CoresPolicy

if TYPE_CHECKING:
    from tessera.node.runtimes import CdiChoice
    from tessera.node.settings import LibraryChoice

FORMS = ("seed", "hami", "json")
PATH = click.Path(path_type=Path)


class NodeFlags(TypedDict):
    """As click gives them."""

    kubeconfig: Path | None
    node: str
    simulate: str
    simulate_file: Path | None
    state_dir: Path
    run_dir: Path
    cgroup_dir: Path
    ignore_xid: tuple[int, ...]


class KubeletFlags(NodeFlags):
    kubelet_dir: Path
    cdi_dir: Path
    hook_path: str
    register_format: str
    cdi: "CdiChoice"
    library: "LibraryChoice"
    cores_policy: "CoresPolicy"
    spill_percent: int


class FiguresFlags(NodeFlags):
    metrics: str
    legacy_metrics: bool
    inventory: str


def node_flags(command: CommandT) -> CommandT:
    return with_flags(
        command,
        KUBECONFIG,
        click.option("--node", default="", help="The name of this node; without it NODE_NAME, else the host's name."),
        click.option("--simulate", default="", help='Simulated cards, not real ones, such as "8xA100-SXM4-80GB".'),
        click.option("--simulate-file", type=PATH, help="A file that describes them; read anew."),
        click.option(
            "--state-dir", type=PATH, default="/var/lib/tessera", show_default=True, help="Where tiles are kept."
        ),
        click.option(
            "--run-dir", type=PATH, default="/run/tessera", show_default=True, help="What containers share with us."
        ),
        click.option("--cgroup-dir", type=PATH, default="/sys/fs/cgroup", show_default=True, help="Of control groups."),
        click.option("--ignore-xid", type=int, multiple=True, help="A fault of NVIDIA's to overlook; may be repeated."),
    )


def kubelet_flags(command: CommandT) -> CommandT:
    return with_flags(
        command,
        click.option("--kubelet-dir", type=PATH, default="/var/lib/kubelet", show_default=True, help="Of the kubelet."),
        click.option("--cdi-dir", type=PATH, default="/var/run/cdi", show_default=True, help="For CDI specifications."),
        click.option("--hook-path", default="/usr/local", show_default=True, help="Where the host has libraries."),
        click.option("--register-format", type=click.Choice(FORMS), default="seed", show_default=True),
        click.option("--cdi", type=click.Choice(("auto", "on", "off")), default="auto", help="Has the runtime CDI?"),
        click.option(
            "--library",
            type=click.Choice(("tessera", "hami")),
            default="tessera",
            show_default=True,
            help="Which library keeps containers with NVIDIA cards within their limits.",
        ),
        click.option(
            "--cores-policy",
            type=click.Choice(POLICIES),
            default="force",
            show_default=True,
            help="Of containers that name none: a strict share, what others leave too, or no share.",
        ),
        click.option(
            "--spill-percent",
            type=SPILL_PERCENT,
            default=0,
            show_default=True,
            help="How much of its memory a container may have again in the host's.",
        ),
    )


def figures_flags(command: CommandT) -> CommandT:
    return with_flags(
        command,
        click.option("--metrics", default="127.0.0.1:9394", show_default=True, help="Where to serve /metrics, health."),
        click.option("--legacy-metrics/--no-legacy-metrics", default=True, show_default=True, help="Old names too."),
        click.option("--inventory", default="", help="Where to serve the inventory over gRPC."),
    )
