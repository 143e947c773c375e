"""`tessera scheduler`: what the stock kube-scheduler must be told."""

import click
import yaml

from tessera.scheduler.configuration import Endpoint, scheduler_configuration
from tessera.vendors.loading import load_catalogue


@click.group("scheduler")
def command() -> None:
    """Configure the stock kube-scheduler for Tessera."""


@command.command("config")
@click.option("--extender-url", default="http://127.0.0.1:8080", show_default=True, help="Where the extender answers.")
@click.option("--ca-file", default="", help="The authority to verify the extender with, as kube-scheduler finds it.")
@click.option("--kubeconfig", default="", help="The kubeconfig that kube-scheduler is to use; none in a pod.")
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True, help="Let one of several lead.")
def config(extender_url: str, ca_file: str, kubeconfig: str, leader_elect: bool) -> None:
    """Print a KubeSchedulerConfiguration with the profiles hami-scheduler and gpu-scheduler."""
    document = scheduler_configuration(
        load_catalogue(), Endpoint(extender_url, ca_file), kubeconfig=kubeconfig, leader_elect=leader_elect
    )
    click.echo(yaml.safe_dump(document, sort_keys=False), nl=False)
