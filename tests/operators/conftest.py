"""An API server of each engine with our kinds, and nobody but the tests and the operator who writes to it.

What the scheduler would write, tests write by hand: a test of what is told about a claim needs no cards.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest
import pytest_asyncio

from tessera.errors import AlreadyExists
from tessera.kube.access import find_access
from tessera.kube.client import Client, Deletion
from tessera.kube.kinds import (
    GPU_CLAIMS,
    GPU_GANGS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Selection,
)
from tessera.operators.compute_objects import COMPUTE_DOCUMENTS, STATEFUL_SETS
from tessera.operators.installing import install_definitions
from testbed.building import Programs
from testbed.fixtures import NewCluster, clusters, require_testbed
from tests.contract.command_line import CommandLine
from tests.embedded.server import Server


class Engine(NamedTuple):
    kubeconfig: Path
    kubectl: CommandLine


new_cluster = pytest.fixture(scope="package")(clusters)


@pytest.fixture(scope="package", params=["embedded", "kubernetes"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    require_testbed()
    directory = tmp_path_factory.mktemp("operators")
    if request.param == "embedded":
        server = Server(directory)
        kubeconfig, stop = server.kubeconfig, server.stop
    else:
        new_cluster: NewCluster = request.getfixturevalue("new_cluster")
        cluster = new_cluster(controllers=False)
        kubeconfig, stop = cluster.kubeconfig, cluster.stop
    asyncio.run(_install(kubeconfig))
    yield Engine(kubeconfig, CommandLine(Programs()["kubectl"], kubeconfig, directory / "cache"))
    stop()


async def _install(kubeconfig: Path) -> None:
    async with Client(find_access(kubeconfig)) as client:
        await install_definitions(client, "test")


@pytest_asyncio.fixture
async def api(engine: Engine) -> AsyncIterator[Client]:
    async with Client(find_access(engine.kubeconfig)) as client:
        yield client


@pytest_asyncio.fixture
async def namespace(api: Client) -> AsyncIterator[str]:
    name = f"claims-{uuid4().hex[:8]}"
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    with suppress(AlreadyExists):  # the embedded server needs no controller for it
        await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=name)
    yield name
    for kind in (GPU_CLAIMS, GPU_GANGS, COMPUTE_DOCUMENTS, STATEFUL_SETS, SERVICES, SECRETS, PODS, LEASES):
        await api.delete_collection(kind, Selection(namespace=name), how=Deletion(grace_s=0))


@pytest.fixture
def kubectl(engine: Engine, namespace: str) -> CommandLine:
    return engine.kubectl.within(namespace)
