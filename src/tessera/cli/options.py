"""Options that every command about a cluster has, spelled as kubectl spells them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
FORMATS = ("wide", "json", "yaml", "name")


def cluster_options(command: CommandT) -> CommandT:
    kubeconfig = click.option(
        "--kubeconfig", type=click.Path(path_type=Path), help="Which kubeconfig; without it, as kubectl finds it."
    )
    context = click.option("--context", help="Which context of the kubeconfig.")
    return kubeconfig(context(command))


def listing_options(command: CommandT) -> CommandT:
    labels = click.option("--selector", "-l", "labels", default="", help="Those with these labels, such as gpu=on.")
    watch = click.option("--watch", "-w", is_flag=True, help="Go on and show what changes.")
    titles = click.option("--no-headers", is_flag=True, help="No line of titles above a table.")
    return labels(watch(output_option(FORMATS)(titles(command))))


def output_option(formats: Sequence[str]) -> Callable[[CommandT], CommandT]:
    option = click.option("--output", "-o", type=click.Choice(formats), help="Another form than a table.")
    return lambda command: option(command)
