"""What every contract test is given: an engine, the administrator's API, and a namespace of its own.

`--engine` (or TESSERA_ENGINE) chooses the engine; `--write-engines-table` writes the outcomes into docs/engines.md.
"""

import functools
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from testbed.fixtures import clusters, require
from tests.contract.api import Api, Collection, Object
from tests.contract.command_line import CommandLine
from tests.contract.custom_resources import Definitions, Widgets
from tests.contract.engines import ENGINES, Engine
from tests.contract.outcomes import Outcomes
from tests.contract.running import Runner
from tests.contract.table import MARKER
from tests.contract.waiting import eventually

TIMEOUT_S = 120


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", choices=sorted(ENGINES), help="the engine that the contract is tested on")
    parser.addoption("--write-engines-table", action="store_true", help="write docs/engines.md from this run")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    if config.getoption("--write-engines-table", default=False):
        config.pluginmanager.register(Outcomes(), "contract-outcomes")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--engine", default=None) or os.environ.get("TESSERA_ENGINE", "kubernetes")
        metafunc.parametrize("engine", [chosen], indirect=True, scope="package")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its time without the engine's: the first one may have to wait until Kubernetes is built."""
    for item in items:
        if item.get_closest_marker("contract"):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S, func_only=True))


new_cluster = pytest.fixture(scope="package")(clusters)


@pytest.fixture(scope="package")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with ENGINES[request.param](request, tmp_path_factory.mktemp("engine")) as engine:
        yield engine


@pytest.fixture(scope="package")
def api(engine: Engine) -> Iterator[Api]:
    with Api(engine.kubeconfig) as api:
        yield api


@pytest.fixture
def api_as(engine: Engine) -> Iterator[Callable[..., Api]]:
    """The API as another user sees it."""
    with ExitStack() as stack:

        def connect(user: str, groups: Sequence[str] = ()) -> Api:
            return stack.enter_context(Api(engine.kubeconfig_for(user, groups)))

        yield connect


def random_name() -> str:
    return f"contract-{secrets.token_hex(4)}"


@pytest.fixture
def unique() -> str:
    """A name that nothing else in the cluster has, for what lives in no namespace."""
    return random_name()


@pytest.fixture
def namespace(api: Api, unique: str) -> Iterator[str]:
    namespaces = api.collection("namespaces")
    namespaces.create({"metadata": {"name": unique}})
    yield unique
    if namespaces.exists(unique):
        namespaces.delete(unique)


@pytest.fixture
def kubectl(engine: Engine, namespace: str) -> CommandLine:
    """kubectl as the administrator, in the test's namespace."""
    return engine.kubectl.within(namespace)


@pytest.fixture
def config_maps(api: Api, namespace: str) -> Collection:
    """Quiet: the one that every namespace is given is already there."""
    config_maps = api.collection("configmaps", namespace)
    eventually(lambda: config_maps.exists("kube-root-ca.crt"))
    return config_maps


@pytest.fixture
def pods(api: Api, namespace: str) -> Collection:
    return api.collection("pods", namespace)


@pytest.fixture
def deployments(api: Api, namespace: str) -> Collection:
    return api.collection("apps/v1/deployments", namespace)


@pytest.fixture
def runner(engine: Engine, pods: Collection) -> Runner:
    """Starts pods that really run."""
    require(engine.runs_pods, "this engine has no node that starts containers")
    return Runner(engine, pods)


@pytest.fixture(scope="package")
def definitions(api: Api) -> Iterator[Definitions]:
    definitions = Definitions(api, f"{random_name()}.example")
    yield definitions
    definitions.remove()


@pytest.fixture
def serve(definitions: Definitions, namespace: str) -> Callable[..., Widgets]:
    """Custom resources with this schema in the test's namespace."""
    return functools.partial(definitions.serve, namespace)


@pytest.fixture
def widgets(serve: Callable[..., Widgets]) -> Widgets:
    """Custom resources whose spec may hold anything."""
    return serve()


Create = Callable[[Collection, Object], Object]


@pytest.fixture
def create_for_now() -> Iterator[Create]:
    """Create something outside every namespace, to be deleted when the test ends."""
    with ExitStack() as stack:

        def create(collection: Collection, body: Object) -> Object:
            created = collection.create(body)
            stack.callback(collection.api.send, "DELETE", f"{collection.path}/{created['metadata']['name']}")
            return created

        yield create
