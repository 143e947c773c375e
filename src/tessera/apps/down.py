"""`tessera down`: end what `tessera up` started, and all of it. What it kept stays for the next start."""

import os
import select
import signal
from pathlib import Path

import click

from tessera.apps.state_directory import StateDirectory, default_path
from tessera.embedded.runtime.leftovers import kill_marked, runtime_name
from tessera.errors import NotReady

STOP_S = 30.0


@click.command("down")
@click.option("--state-dir", type=click.Path(path_type=Path), help="Which engine; else that in XDG_STATE_HOME.")
def command(state_dir: Path | None) -> None:
    """Stop the cluster on this machine. Its objects are kept, and the next `up` finds them."""
    directory = StateDirectory(state_dir or default_path())
    holder = directory.holder()
    if holder is None:
        click.echo(f"no engine runs in {directory.path}", err=True)
    else:
        _stop(directory, holder)
        click.echo(f"stopped; what it kept is in {directory.path}", err=True)
    _end_leftovers(directory.path / "runtime")


def _stop(directory: StateDirectory, holder: int) -> None:
    """First as it wishes, then by force: then it has had time enough."""
    try:
        process = os.pidfd_open(holder)
    except ProcessLookupError:
        return
    with open(process, "rb"):
        for number in (signal.SIGTERM, signal.SIGKILL):
            signal.pidfd_send_signal(process, number)
            ended, _, _ = select.select([process], [], [], STOP_S)
            if ended:
                return
    raise NotReady(f"process {holder} does not end, expected it to let go of {directory.path}; is its disk there?")


def _end_leftovers(runtime: Path) -> None:
    """Of an engine that was killed."""
    if (runtime / "runtime-name").exists():
        kill_marked(f"{runtime_name(runtime)}/")
