"""`tessera scheduler`: what the stock kube-scheduler must be told."""

import sys
from pathlib import Path

import click

from tessera.apps.plain_yaml import as_yaml
from tessera.scheduler.adapting import adapt_configuration
from tessera.scheduler.configuration import Endpoint, scheduler_configuration
from tessera.scheduler.profiles import Given, load_configuration, parse_configuration
from tessera.vendors.loading import load_catalogue

STDIN = Path("-")


@click.group("scheduler")
def command() -> None:
    """Configure the stock kube-scheduler for Tessera."""


@command.command("config")
@click.option("--extender-url", default="http://127.0.0.1:8080", show_default=True, help="Where the extender answers.")
@click.option("--ca-file", default="", help="The authority to verify the extender with, as kube-scheduler finds it.")
@click.option("--kubeconfig", default="", help="The kubeconfig that kube-scheduler is to use; none in a pod.")
@click.option("--leader-elect/--no-leader-elect", default=None, help="Let one of several lead; so it is by default.")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A KubeSchedulerConfiguration that names GpuClaimPlugin, to be made into one with our extender; - is stdin.",
)
def config(extender_url: str, ca_file: str, kubeconfig: str, leader_elect: bool | None, source: Path | None) -> None:
    """Print a KubeSchedulerConfiguration with the profiles hami-scheduler and gpu-scheduler, or those of a file."""
    catalogue, endpoint = load_catalogue(), Endpoint(extender_url, ca_file)
    if source is None:
        elects = leader_elect is not False
        document = scheduler_configuration(catalogue, endpoint, kubeconfig=kubeconfig, leader_elect=elects)
    else:
        document, notes = adapt_configuration(
            _read(source), catalogue, endpoint, kubeconfig=kubeconfig, leader_elect=leader_elect
        )
        for note in notes:
            click.echo(note, err=True)
    click.echo(as_yaml(document), nl=False)


def _read(source: Path) -> Given:
    if source == STDIN:
        return parse_configuration(sys.stdin.buffer.read(), "stdin")
    return load_configuration(source)
