"""One engine for each module, and the administrator's way to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.api import Api, Collection
from tests.embedded.whole_engine import WholeEngine


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeEngine]:
    engine = WholeEngine(tmp_path_factory.mktemp("up"), "--nodes", "2", "--cards", "2xA100-SXM4-80GB")
    with engine.running():
        yield engine


@pytest.fixture
def api(engine: WholeEngine) -> Iterator[Api]:
    with Api(engine.kubeconfig) as api:
        yield api


@pytest.fixture
def pods(api: Api) -> Collection:
    return api.collection("pods", "default")


@pytest.fixture
def lone_engine(tmp_path: Path) -> Iterator[WholeEngine]:
    """For a test that starts and ends it as it needs: one node with one card, not up yet."""
    engine = WholeEngine(tmp_path, "--nodes", "1", "--cards", "1xA100-SXM4-80GB")
    yield engine
    engine.down()
