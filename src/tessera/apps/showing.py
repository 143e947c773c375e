"""What the commands that look at a cluster do once their arguments are read.

It stands apart from them because it needs the whole Kubernetes transport, which takes longer to import than `--help`
may take to answer.
"""

import asyncio
from pathlib import Path
from typing import NamedTuple

import click

from tessera.apps.reaching import reached
from tessera.cli.doctor import draw_findings
from tessera.cli.listing import Listing, as_json, as_yaml, run_listing
from tessera.cli.nodes import NODE_LOOK
from tessera.cli.pods import pod_look
from tessera.cli.table import TablePrinter, stdout_paper
from tessera.errors import CredentialsFailed, InvalidKubeconfig, TesseraError, Unauthorized, Unreachable
from tessera.kube.transport import Limits
from tessera.vendors.loading import load_catalogue
from tessera.views.checks import examine, has_problem
from tessera.views.findings import Finding, problem
from tessera.views.observing import observe_cluster
from tessera.views.records import API_VERSION
from tessera.views.scenes import NodeScene, PodScene
from tessera.views.versions import Versions, read_versions

IMPATIENT = Limits(request_s=10.0)
"""For whoever asks whether a cluster is there at all."""


class Place(NamedTuple):
    """Which cluster; as kubectl finds it where nothing is said."""

    kubeconfig: Path | None
    context: str | None


class Manner(NamedTuple):
    """How a list is shown; `output` is empty for a table."""

    output: str
    watch: bool
    titles: bool


def show_nodes(place: Place, manner: Manner, *, labels: str) -> None:
    listing = Listing(NODE_LOOK, manner.output, titles=manner.titles)

    async def run() -> None:
        async with reached(*place) as client:
            scene = NodeScene(client, load_catalogue(), labels=labels)
            nothing = "there are no nodes, or none with these labels"
            await run_listing(scene, listing, watch=manner.watch, nothing=nothing)

    asyncio.run(run())


def show_pods(place: Place, manner: Manner, *, namespace: str | None, everywhere: bool, labels: str) -> None:
    """Without a namespace those of the kubeconfig's."""
    listing = Listing(pod_look(namespaces=everywhere), manner.output, titles=manner.titles)

    async def run() -> None:
        async with reached(*place) as client:
            where = "" if everywhere else namespace or client.namespace
            scene = PodScene(client, load_catalogue(), namespace=where, labels=labels)
            nothing = f"no pod {f'in namespace {where}' if where else 'in any namespace'} asks for cards"
            await run_listing(scene, listing, watch=manner.watch, nothing=nothing)

    asyncio.run(run())


def show_findings(place: Place, output: str | None) -> bool:
    """False, if there is a problem."""
    findings = asyncio.run(_find(place))
    if output:
        show_document({"apiVersion": API_VERSION, "kind": "FindingList", "items": findings}, output)
    else:
        for line in TablePrinter(stdout_paper(), titles=False).lines(draw_findings(findings)):
            click.echo(line)
    return not has_problem(findings)


async def _find(place: Place) -> tuple[Finding, ...]:
    try:
        async with reached(*place, limits=IMPATIENT) as client:
            return examine(await observe_cluster(client, load_catalogue()))
    except (InvalidKubeconfig, Unreachable, CredentialsFailed, Unauthorized) as error:
        return (problem("cluster", str(error)),)


def show_versions(place: Place, output: str | None, *, client_only: bool) -> None:
    versions = Versions() if client_only else asyncio.run(_read_versions(place))
    if output:
        show_document(versions, output)
        return
    click.echo(f"client: {versions.client}")
    if versions.kubernetes is not None:
        unseen = "unknown, its pods may not be listed"
        installed = unseen if versions.schedulers is None else ", ".join(versions.schedulers) or "not installed"
        click.echo(f"Kubernetes: {versions.kubernetes}")
        click.echo(f"scheduler: {installed}")


async def _read_versions(place: Place) -> Versions:
    try:
        async with reached(*place, limits=IMPATIENT) as client:
            return await read_versions(client)
    except TesseraError as error:
        click.echo(f"tessera: the cluster's version is unknown: {error}", err=True)
        return Versions()


def show_document(document: object, output: str) -> None:
    click.echo(as_json(document) if output == "json" else as_yaml(document).rstrip("\n"))
