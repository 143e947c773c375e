"""Computes as Python programs use them, on both engines: the client, the operator and the server as they are."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from kubernetes import client, config

from kpu.client import Compute, cluster, init
from testbed.fixtures import clusters
from tests.contract.command_line import CommandLine
from tests.operators.compute_life import ENGINES, ComputeEngine, own_namespace, running_engine

MakeCompute = Callable[..., Compute]
TIMEOUT_S = 180


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its time without the engine's: the first one may have to wait until Kubernetes is built."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S, func_only=True))


new_cluster = pytest.fixture(scope="package")(clusters)


compute_engine = pytest.fixture(scope="package", params=ENGINES)(running_engine)


@pytest.fixture
def kubectl(compute_engine: ComputeEngine) -> Iterator[CommandLine]:
    """In a namespace of the test's own."""
    with own_namespace(compute_engine) as kubectl:
        yield kubectl


@pytest.fixture
def namespace(kubectl: CommandLine) -> str:
    return kubectl("get", "sa", "default", "-o", "jsonpath={.metadata.namespace}")


@pytest.fixture
def configuration(compute_engine: ComputeEngine) -> client.Configuration:
    """The administrator's."""
    configuration = client.Configuration()
    config.load_kube_config(str(compute_engine.kubeconfig), client_configuration=configuration)
    return configuration


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`init`, as in a process where nobody has called it yet."""
    monkeypatch.setattr(cluster, "_made", [])
    return init


@pytest_asyncio.fixture
async def make_compute(
    fresh: Callable[..., None], configuration: client.Configuration, namespace: str
) -> AsyncIterator[MakeCompute]:
    """Computes in the test's namespace; their connections are closed when it ends."""
    fresh(client_config=configuration, namespace=namespace)
    made: list[Compute] = []

    def make(name: str, **options: object) -> Compute:
        made.append(Compute(name, **options))  # type: ignore[arg-type] # the options are Compute's own
        return made[-1]

    yield make
    for compute in made:
        await compute.close()
