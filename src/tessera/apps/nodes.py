"""`tessera nodes`: every node with its cards, and who is on them."""

from pathlib import Path

import click

from tessera.cli.options import cluster_options, listing_options


@click.command("nodes")
@listing_options
@cluster_options
def command(
    labels: str, watch: bool, output: str | None, no_headers: bool, kubeconfig: Path | None, context: str | None
) -> None:
    """Show every node with its cards: how much of them is given away, and whether they are well.

    \b
    tessera nodes -l gpu=on
    tessera nodes -o wide      one line for each card, and who is on it
    tessera nodes -w           go on and show what changes
    """
    from tessera.apps.showing import Manner, Place, show_nodes

    show_nodes(Place(kubeconfig, context), Manner(output or "", watch, not no_headers), labels=labels)
