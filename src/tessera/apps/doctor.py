"""`tessera doctor`: what is wrong with a cluster, and what to do about it."""

from pathlib import Path

import click

from tessera.cli.options import cluster_options, output_option


@click.command("doctor")
@output_option(("json", "yaml"))
@cluster_options
@click.pass_context
def command(ctx: click.Context, output: str | None, kubeconfig: Path | None, context: str | None) -> None:
    """Check a cluster and say what to do. Exits with 1 if there is a problem; a warning is none."""
    from tessera.apps.showing import Place, show_findings

    ctx.exit(0 if show_findings(Place(kubeconfig, context), output) else 1)
