"""`tessera run device-plugin`: the agent without its figures, which `tessera run exporter` shows."""

from typing import TYPE_CHECKING, Unpack

import click

from tessera.apps.node_flags import kubelet_flags, node_flags

if TYPE_CHECKING:
    from tessera.apps.node_processes import DevicePluginFlags


@click.command("device-plugin")
@node_flags
@kubelet_flags
@click.option("--health", default="127.0.0.1:9395", show_default=True, help="Where to serve /healthz and /readyz.")
def command(**flags: "Unpack[DevicePluginFlags]") -> None:
    """Tell the cluster this node's cards, and give them to containers; metrics are the exporter's."""
    import uvloop

    from tessera.apps.node_processes import run_device_plugin

    uvloop.run(run_device_plugin(flags))
