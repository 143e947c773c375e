"""`tessera run agent`: the process of each node. It tells the cluster its cards and prepares containers for them."""

from typing import TYPE_CHECKING, Unpack

import click

from tessera.apps.node_flags import figures_flags, kubelet_flags, node_flags

if TYPE_CHECKING:
    from tessera.apps.node_processes import AgentFlags


@click.command("agent")
@node_flags
@kubelet_flags
@figures_flags
def command(**flags: "Unpack[AgentFlags]") -> None:
    """Tell the cluster this node's cards, and give them to containers."""
    import uvloop

    from tessera.apps.node_processes import run_agent

    uvloop.run(run_agent(flags))
