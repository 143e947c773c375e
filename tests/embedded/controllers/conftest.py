"""A real API server, our controllers in place of kube-controller-manager, and a simulated node that runs pods."""

import secrets
from collections.abc import Callable, Iterator

import pytest

from testbed.cluster import Cluster
from testbed.fixtures import NewCluster, clusters
from tests.contract.api import Api, Collection, Object
from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.embedded.controllers.background import Background
from tests.embedded.controllers.workloads import NODE

new_cluster = pytest.fixture(scope="package")(clusters)


@pytest.fixture(scope="package")
def controlled_cluster(new_cluster: NewCluster) -> Iterator[Cluster]:
    cluster = new_cluster(controllers=False, simulated_nodes=1)
    yield cluster
    cluster.stop()


@pytest.fixture(scope="package")
def controllers(controlled_cluster: Cluster) -> Iterator[Background]:
    authority = controlled_cluster.control_plane.authority.files.certificate
    log = controlled_cluster.machine.logs / "controllers.log"
    background = Background(controlled_cluster.kubeconfig, authority, log)
    yield background
    background.kill()


@pytest.fixture
def api(controlled_cluster: Cluster, controllers: Background) -> Iterator[Api]:
    del controllers
    with Api(controlled_cluster.kubeconfig) as api:
        eventually(lambda: not api.get(f"/api/v1/nodes/{NODE}")["spec"].get("taints"))
        yield api


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    name = f"test-{secrets.token_hex(4)}"
    api.collection("namespaces").create({"metadata": {"name": name}})
    accounts = api.collection("serviceaccounts", name)
    eventually(lambda: accounts.exists("default"))
    yield name
    if api.collection("namespaces").exists(name):
        api.collection("namespaces").delete(name)


@pytest.fixture
def of(api: Api, namespace: str) -> Callable[[str], Collection]:
    """The objects of a kind in the test's namespace: of("apps/v1/deployments")."""
    return lambda resource: api.collection(resource, namespace)


@pytest.fixture
def pods(of: Callable[[str], Collection]) -> Collection:
    return of("pods")


@pytest.fixture
def kubectl(controlled_cluster: Cluster, namespace: str) -> CommandLine:
    cache = controlled_cluster.machine.directory / "kubectl"
    program = controlled_cluster.programs["kubectl"]
    return CommandLine(program, controlled_cluster.kubeconfig, cache).within(namespace)


@pytest.fixture
def active(pods: Collection) -> Callable[..., list[Object]]:
    """The pods that have not ended and are not going."""

    def find(**query: str) -> list[Object]:
        found = pods.listing(**query)["items"]
        return [
            pod
            for pod in found
            if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] not in ("Succeeded", "Failed")
        ]

    return find
