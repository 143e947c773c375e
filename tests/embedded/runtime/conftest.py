import pytest_asyncio

from tests.embedded.runtime.node import running_node


@pytest_asyncio.fixture
async def node(tmp_path):
    async with running_node(tmp_path / "runtime") as node:
        yield node
