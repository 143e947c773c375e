"""What `tessera up` says when all is ready: talk to stderr, and to stdout the one line that a shell can take."""

import shlex

import click

from tessera.apps.state_directory import EngineSettings, StateDirectory, default_path


def tell_next(directory: StateDirectory, settings: EngineSettings, *, is_detached: bool) -> None:
    nodes = "one node with" if settings.nodes == 1 else f"{settings.nodes} nodes, each with"
    cards = settings.cards_file or settings.cards or "the cards of this machine"
    click.echo(f"Tessera is up: {nodes} {cards}; API server at https://127.0.0.1:{settings.port}", err=True)
    click.echo("Next:", err=True)
    click.echo(f"export KUBECONFIG={shlex.quote(str(directory.kubeconfig))}")
    stop = words_to_stop(directory) if is_detached else "Ctrl-C ends it"
    for line in ("kubectl get nodes", "tessera nodes", "kubectl get pods -n kube-system", stop):
        click.echo(line, err=True)


def words_to_stop(directory: StateDirectory) -> str:
    is_usual = directory.path == default_path().absolute()
    return "tessera down" if is_usual else f"tessera down --state-dir {shlex.quote(str(directory.path))}"
