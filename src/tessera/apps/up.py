"""`tessera up`: a whole cluster on this machine, in one process, with everything it knows in one directory."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click
import msgspec
import uvloop

from tessera.apps.flags import SPILL_PERCENT
from tessera.apps.state_directory import EngineSettings, StateDirectory, default_path
from tessera.apps.up_cluster import use_cluster
from tessera.apps.up_complaints import leave_out_upgrades
from tessera.apps.up_detached import start_detached, tell_ready
from tessera.apps.up_settings import Wanted, choose_settings
from tessera.apps.up_words import tell_next, words_to_stop
from tessera.errors import InvalidRequest, StoreInUse
from tessera.model.cores_policy import POLICIES, CoresPolicy

if TYPE_CHECKING:
    from tessera.apps.embedded_engine import Ports


class Flags(TypedDict):
    """As click gives them; None for what was not said."""

    nodes: int | None
    cards: str | None
    cards_file: Path | None
    scheduler_config: str | None
    cores_policy: CoresPolicy | None
    spill_percent: int | None
    state_dir: Path | None
    port: int
    cluster: Path | None
    detach: bool
    ready_fd: int | None


@click.command("up")
@click.option("--nodes", type=click.IntRange(1, 1000), help="How many nodes; 4, or one where there are real cards.")
@click.option("--cards", help='The cards of each node, simulated, such as "8xA100-SXM4-80GB".')
@click.option("--cards-file", type=click.Path(path_type=Path), help="A file that describes them, islands and NUMA too.")
@click.option("--scheduler-config", metavar="FILE", help='A KubeSchedulerConfiguration to honour; "" for none again.')
@click.option("--cores-policy", type=click.Choice(POLICIES), help="Of containers that name none; force at first.")
@click.option("--spill-percent", type=SPILL_PERCENT, help="How much of its memory a container may have in the host's.")
@click.option("--state-dir", type=click.Path(path_type=Path), help="Where everything is kept; else in XDG_STATE_HOME.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the API server; else as before, or any.")
@click.option("--cluster", type=click.Path(path_type=Path), help="A kubeconfig: use its cluster, and start none.")
@click.option("--detach", is_flag=True, help="Return when it is ready, and leave it running.")
@click.option("--ready-fd", type=int, hidden=True, help="Where to say that it is ready.")
def command(**flags: Unpack[Flags]) -> None:
    """Start a cluster on this machine. What an earlier `up` left in the directory is there again."""
    if flags["cluster"] is not None:
        others = {name.replace("_", "-"): value for name, value in flags.items() if name not in ("cluster", "ready_fd")}
        use_cluster(flags["cluster"], others)
        return
    directory = StateDirectory(flags["state_dir"] or default_path())
    directory.open()
    wanted = Wanted(
        nodes=flags["nodes"],
        cards=flags["cards"],
        cards_file=flags["cards_file"],
        scheduler_config=flags["scheduler_config"],
        cores_policy=flags["cores_policy"],
        spill_percent=flags["spill_percent"],
    )
    settings = choose_settings(wanted, directory.read_settings())
    if flags["detach"]:
        start_detached(directory, settings, flags["port"])
        tell_next(directory, directory.read_settings() or settings, is_detached=True)
        return
    _run(directory, settings, flags["port"], flags["ready_fd"])


def _run(directory: StateDirectory, settings: EngineSettings, port: int, ready_fd: int | None) -> None:
    from tessera.apps.embedded_engine import run_engine  # a detached start needs none of it
    from tessera.embedded.store import Store

    leave_out_upgrades()
    try:
        store = Store.open(directory.path / "state.db")
    except StoreInUse:
        raise already_up(directory) from None
    with closing(store), directory.used():
        directory.check_certificate()
        ports = _take(port, settings.port)
        settings = msgspec.structs.replace(settings, port=ports.api_port)
        directory.write_settings(settings)

        def ready() -> None:
            if ready_fd is None:
                tell_next(directory, settings, is_detached=False)
            else:
                tell_ready(directory, ready_fd)

        uvloop.run(run_engine(directory, settings, ports, store, ready))


def _take(port: int, before: int) -> "Ports":
    from tessera.apps.embedded_engine import Ports

    try:
        return Ports(port, before)
    except InvalidRequest as error:
        raise InvalidRequest(f"{error}: another --port, or none for any that is free") from error


def already_up(directory: StateDirectory) -> StoreInUse:
    holder = directory.holder()
    who = f"process {holder}" if holder else "another process"
    return StoreInUse(
        f"{directory.path}: {who} runs an engine there already; use it with export KUBECONFIG={directory.kubeconfig},"
        f" stop it with `{words_to_stop(directory)}`, or choose another --state-dir"
    )
