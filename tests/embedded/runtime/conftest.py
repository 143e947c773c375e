import pytest
import pytest_asyncio

from testbed.fixtures import clusters
from tests.embedded.runtime.node import running_node

new_cluster = pytest.fixture(scope="package")(clusters)


@pytest_asyncio.fixture
async def node(tmp_path):
    async with running_node(tmp_path / "runtime") as node:
        yield node
