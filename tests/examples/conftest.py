"""The cluster that the examples run on: the one of the seeds' samples."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.seeds.engines import chosen_engine


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Iterator[Path]:
    engine = chosen_engine(request)
    yield engine.kubeconfig
    engine.stop()
