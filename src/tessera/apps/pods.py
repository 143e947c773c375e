"""`tessera pods`: the pods that ask for cards, what they got and what they wait for."""

from pathlib import Path

import click

from tessera.cli.options import cluster_options, listing_options


@click.command("pods")
@click.option("--namespace", "-n", help="Which namespace; without it, that of the kubeconfig.")
@click.option("--all-namespaces", "-A", is_flag=True, help="The pods of every namespace.")
@listing_options
@cluster_options
def command(
    namespace: str | None,
    all_namespaces: bool,
    labels: str,
    watch: bool,
    output: str | None,
    no_headers: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show the pods that ask for cards: which they got, or why they wait and since when.

    \b
    tessera pods -A
    tessera pods -n train -o wide    with the UUID of each card
    tessera pods -w                  go on and show what changes
    """
    from tessera.apps.showing import Manner, Place, show_pods

    manner = Manner(output or "", watch, not no_headers)
    show_pods(Place(kubeconfig, context), manner, namespace=namespace, everywhere=all_namespaces, labels=labels)
