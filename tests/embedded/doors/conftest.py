"""One engine for each module; each test leaves no pod and no Service behind."""

import pytest_asyncio

from tests.embedded.doors.engine import running_engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_engine(tmp_path_factory):
    async with running_engine(tmp_path_factory.mktemp("engine")) as engine:
        yield engine


@pytest_asyncio.fixture(loop_scope="module")
async def engine(shared_engine):
    yield shared_engine
    await shared_engine.clean()
