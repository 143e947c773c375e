"""`tessera run webhook`: the admission endpoint without a scheduler beside it."""

from typing import TYPE_CHECKING, Unpack

import click

from tessera.apps.flags import KUBECONFIG
from tessera.apps.webhook_flags import webhook_flags

if TYPE_CHECKING:
    from tessera.apps.webhook_process import Flags


@click.command("webhook")
@KUBECONFIG
@webhook_flags
@click.option("--metrics", default="", help="Where to serve /metrics and health alone, in plain HTTP.")
def command(**flags: "Unpack[Flags]") -> None:
    """Answer the API server on /webhook and /mutate, and decide about nothing else."""
    import uvloop

    from tessera.apps.webhook_process import run

    uvloop.run(run(flags))
