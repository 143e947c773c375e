"""`tessera run extender`: the scheduler, for kube-scheduler to ask."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tessera.apps.flags import KUBECONFIG, LEASE_NAMESPACE
from tessera.apps.webhook_flags import webhook_flags

if TYPE_CHECKING:
    from tessera.apps.extender_options import Flags


@click.command("extender")
@KUBECONFIG
@click.option("--http", default="127.0.0.1:8080", show_default=True, help="Where to serve everything in plain HTTP.")
@click.option("--no-http", is_flag=True, help="Serve nothing in plain HTTP but --metrics.")
@click.option("--https", default="", help="Where to serve everything over TLS.")
@click.option("--tls-dir", type=click.Path(path_type=Path), help="The tls.crt and tls.key of --https; read anew.")
@webhook_flags
@click.option("--metrics", default="", help="Where to serve /metrics and /ledger alone, in plain HTTP.")
@click.option("--legacy-metrics/--no-legacy-metrics", default=True, show_default=True, help="HAMi's old names too.")
@click.option("--bind-events", is_flag=True, help="HAMi's event for each bind; kube-scheduler has its own.")
@click.option("--node-policy", default="defrag", show_default=True, help="For pods that name no node policy.")
@click.option("--card-policy", default="defrag", show_default=True, help="For pods that name no card policy.")
@click.option("--leader-elect", is_flag=True, help="One of several replicas decides, the one that has the lease.")
@click.option("--follow-lease", default="", help="NAMESPACE/NAME of kube-scheduler's lease; who is beside it decides.")
@click.option("--follow-host", default="", help="How that holder's name begins if it is ours; else our host name.")
@LEASE_NAMESPACE
def command(**flags: "Unpack[Flags]") -> None:
    """Answer kube-scheduler on /filter, /prioritize and /bind, and the API server on /webhook and /mutate."""
    import uvloop

    from tessera.apps.extender_options import read_options
    from tessera.apps.extender_process import run

    uvloop.run(run(read_options(flags)))
