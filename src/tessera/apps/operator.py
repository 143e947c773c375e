"""`tessera run operator`: what GpuClaims and GpuGangs say of themselves, and the life of Computes."""

from typing import TYPE_CHECKING, Unpack

import click

from tessera.apps.flags import KUBECONFIG, LEASE_NAMESPACE

if TYPE_CHECKING:
    from tessera.apps.operator_process import Flags


@click.command("operator")
@KUBECONFIG
@LEASE_NAMESPACE
@click.option("--metrics", default="127.0.0.1:9397", show_default=True, help="Where to serve /metrics and health.")
@click.option("--leader-elect", is_flag=True, help="One of several replicas writes, the one that has the lease.")
@click.option("--install-definitions", is_flag=True, help="Install our kinds first, as the chart does.")
@click.option(
    "--compute-image",
    default="kpu-torch-server:latest",
    show_default=True,
    help="What Computes run that name no image.",
)
@click.option(
    "--cluster-domain",
    default="cluster.local",
    show_default=True,
    help="Of the cluster's DNS; empty where there is none.",
)
@click.option(
    "--shared-directory",
    "shared_directories",
    multiple=True,
    default=("/run/kpu",),
    show_default=True,
    help="A directory of nodes below which Computes may have their shared memory; may be repeated.",
)
def command(**flags: "Unpack[Flags]") -> None:
    """Keep the status of GpuClaims and GpuGangs as pods and leases say, and make for Computes what they need."""
    import uvloop

    from tessera.apps.operator_process import run

    uvloop.run(run(flags))
