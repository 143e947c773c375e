"""`tessera run exporter`: what Prometheus and gRPC clients read about a node, in a process that writes nothing."""

from typing import TYPE_CHECKING, Unpack

import click

from tessera.apps.node_flags import figures_flags, node_flags

if TYPE_CHECKING:
    from tessera.apps.node_flags import FiguresFlags


@click.command("exporter")
@node_flags
@figures_flags
def command(**flags: "Unpack[FiguresFlags]") -> None:
    """Show this node's cards and who holds them, beside a device plugin, and change nothing."""
    import uvloop

    from tessera.apps.node_processes import run_exporter

    uvloop.run(run_exporter(flags))
