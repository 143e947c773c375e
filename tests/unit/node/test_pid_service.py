"""A process asks for its number on the node, and is told what the kernel knows."""

import asyncio
import os
import stat
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from tessera.node.pid_service import serve_pids

pytestmark = pytest.mark.asyncio
PATIENCE_S = 10.0


@pytest_asyncio.fixture
async def path(tmp_path: Path) -> AsyncGenerator[Path]:
    path = tmp_path / "agent" / "socket"
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve_pids(path))
        await asyncio.wait_for(_there(path), PATIENCE_S)
        yield path
        serving.cancel()


async def _there(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


async def ask(path: Path) -> bytes:
    directory = os.open(path.parent, os.O_PATH)
    try:
        reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)
    answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    return answer


async def test_whoever_connects_is_told_one_line(path: Path):
    assert await ask(path) == f"pid {os.getpid()}\n".encode()
    assert await ask(path) == f"pid {os.getpid()}\n".encode()


async def test_processes_of_any_user_may_ask(path: Path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o666


async def test_a_new_agent_takes_the_place_of_the_old_without_a_gap(path: Path):
    before = path.stat().st_ino
    serving = asyncio.create_task(serve_pids(path))
    while path.stat().st_ino == before:
        await asyncio.sleep(0.01)
    assert (await ask(path)).startswith(b"pid ")
    serving.cancel()


async def test_a_place_that_cannot_be_had_is_said_and_ends_nobody(tmp_path: Path):
    (tmp_path / "agent").write_text("in the way")
    with capture_logs() as lines, pytest.raises(TimeoutError):
        await asyncio.wait_for(serve_pids(tmp_path / "agent" / "socket"), 0.2)
    assert [line["log_level"] for line in lines] == ["warning"]
