"""The MPIJob SDK as Python programs use it: on a real Kubernetes with the operator's CRD, and on the embedded engine.

That CRD is not part of this project. It is found in the directory that `TESSERA_KUBEFLOW` names, or in
`shared/kubeflow` beside the repository; where it is not, the tests that need it skip and say so.
"""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from kubernetes.client.exceptions import ApiException

from openshift_ai_sdk.training import MPIJob
from testbed.building import Programs
from testbed.cluster import Cluster
from testbed.fixtures import NewCluster, clusters, require_testbed
from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.embedded.whole_engine import WholeEngine
from tests.mpi.kubeflow import kubeflow_file

TIMEOUT_S = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its time without the engine's: the first one may have to wait until Kubernetes is built."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S, func_only=True))


class Server:
    """`error_before` is what was said before there were MPIJobs."""

    def __init__(self, kubectl: CommandLine, kubeconfig: Path, error_before: ApiException) -> None:
        self.kubectl = kubectl
        self.kubeconfig = kubeconfig
        self.error_before = error_before


new_cluster = pytest.fixture(scope="package")(clusters)


@pytest.fixture(scope="package")
def server(new_cluster: NewCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    definition = kubeflow_file("mpijob-crd.yaml")
    cluster: Cluster = new_cluster(node=True)
    kubectl = CommandLine(cluster.programs["kubectl"], cluster.kubeconfig, tmp_path_factory.mktemp("cache"))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KUBECONFIG", str(cluster.kubeconfig))
        with pytest.raises(ApiException) as before:
            MPIJob("train", image="mpi").create()
        kubectl("apply", "--server-side", "-f", str(definition))
        accepted = "jsonpath={.status.acceptedNames.kind}"
        eventually(lambda: kubectl("get", "crd", "mpijobs.kubeflow.org", "-o", accepted) == "MPIJob")
        eventually(are_served)
        kubectl("create", "namespace", "lab")
        eventually(lambda: "default" in kubectl("get", "sa", "-n", "lab", "-o", "name"))
        yield Server(kubectl.within("lab"), cluster.kubeconfig, before.value)
    cluster.stop()


def are_served() -> bool:
    try:
        return MPIJob.list() == []
    except ApiException:
        return False


@pytest.fixture(scope="package")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeEngine]:
    """Two nodes with two simulated cards each."""
    engine = WholeEngine(tmp_path_factory.mktemp("mpi-sdk"), "--nodes", "2", "--cards", "2xA100-SXM4-80GB")
    with engine.running():
        yield engine


@pytest.fixture(scope="package")
def engine_kubectl(engine: WholeEngine, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    require_testbed()
    return CommandLine(Programs()["kubectl"], engine.kubeconfig, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture
def namespace(engine: WholeEngine, engine_kubectl: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One of the test's own on the engine, which is the cluster that the SDK finds."""
    monkeypatch.setenv("KUBECONFIG", str(engine.kubeconfig))
    name = f"lab-{uuid4().hex[:8]}"
    engine_kubectl("create", "namespace", name)
    eventually(lambda: "default" in engine_kubectl("get", "sa", "-n", name, "-o", "name"))
    yield name
    engine_kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def kubectl(engine_kubectl: CommandLine, namespace: str) -> CommandLine:
    return engine_kubectl.within(namespace)
