"""One server for each module, and the administrator's way to it."""

from collections.abc import Iterator

import pytest

from tests.contract.api import Api, Collection
from tests.embedded.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("embedded"))
    yield server
    server.stop()


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    with Api(server.kubeconfig) as api:
        yield api


@pytest.fixture
def config_maps(api: Api) -> Collection:
    return api.collection("configmaps", "default")
