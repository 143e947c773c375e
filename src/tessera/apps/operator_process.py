"""The operator's process: it tells of claims and gangs what became of them, and looks after Computes."""

import socket
from pathlib import Path
from typing import TypedDict

from tessera.apps.addresses import read_health_address
from tessera.apps.serving import Listener, make_app, serve_all
from tessera.apps.working import running
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.leases import Election
from tessera.kube.objects import ObjectKey
from tessera.operators.compute_children import ComputeSettings
from tessera.operators.compute_running import ComputeOperator
from tessera.operators.figures import registry_of
from tessera.operators.installing import install_definitions
from tessera.operators.running import Operator
from tessera.vendors.loading import load_catalogue

COMPONENT = "tessera-operator"
LEASE = ObjectKey("kube-system", COMPONENT)


class Flags(TypedDict):
    """As click gives them."""

    kubeconfig: Path | None
    lease_namespace: str
    metrics: str
    leader_elect: bool
    install_definitions: bool
    compute_image: str
    cluster_domain: str
    shared_directories: tuple[str, ...]


async def run(flags: Flags) -> None:
    """Ready when everything was read once, whoever leads."""
    metrics = read_health_address("--metrics", flags["metrics"])
    host = socket.gethostname()
    async with Client(find_access(flags["kubeconfig"])) as client:
        if flags["install_definitions"]:
            await install_definitions(client, COMPONENT)
        election = Election(client, LEASE, host) if flags["leader_elect"] else None
        recorder = Recorder(client, component=COMPONENT, host=host)
        operator = Operator(client, recorder, lease_namespace=flags["lease_namespace"], leading=election)
        settings = ComputeSettings(
            image=flags["compute_image"],
            cluster_domain=flags["cluster_domain"],
            host_paths=flags["shared_directories"],
        )
        computes = ComputeOperator(client, recorder, load_catalogue(), settings=settings, leading=election)
        app = make_app(
            is_ready=lambda: operator.is_synced and computes.is_synced, metrics=registry_of(operator, computes)
        )
        works = (recorder.run(), *operator.works(), *computes.works())
        async with running(*works, *([election.run()] if election else [])):
            await serve_all(Listener(app, *metrics))
        if election:
            await election.resign()
