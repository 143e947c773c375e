"""`tessera version`: which versions meet here."""

from pathlib import Path

import click

from tessera.cli.options import cluster_options, output_option


@click.command("version")
@click.option("--client", "client_only", is_flag=True, help="Ask no cluster.")
@output_option(("json", "yaml"))
@cluster_options
def command(client_only: bool, output: str | None, kubeconfig: Path | None, context: str | None) -> None:
    """Print the version of this program and, if a cluster can be reached, those of the cluster."""
    from tessera.apps.showing import Place, show_versions

    show_versions(Place(kubeconfig, context), output, client_only=client_only)
