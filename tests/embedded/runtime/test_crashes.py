"""No crash of the engine leaves a process behind, and no new engine ends anybody else's."""

import os
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

from tessera.embedded.runtime.cgroups import Cgroups
from tessera.embedded.runtime.leftovers import runtime_name
from tests.embedded.runtime.node import FOREVER, has_ended, is_running, running_node
from tests.embedded.runtime.processes import PATIENCE_S, eventually, pids_with, shims_of

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize("means", ["cgroups", "processes"])
def test_a_killed_engine_leaves_no_process(tmp_path, means):
    with engine(tmp_path, means) as (program, word):
        assert len(pids_with(word)) == 6
        program.kill()
        program.wait()
        eventually(lambda: not pids_with(word))


def test_an_engine_that_is_interrupted_leaves_no_process(tmp_path):
    with engine(tmp_path, "processes") as (program, word):
        program.send_signal(signal.SIGINT)
        program.wait(timeout=PATIENCE_S)
        assert not pids_with(word)


@pytest.mark.asyncio
async def test_a_new_engine_ends_what_a_former_one_left_and_nothing_else(tmp_path):
    with (
        engine(tmp_path / "mine", "processes") as (mine, my_word),
        engine(tmp_path / "other", "processes") as (_, word),
    ):
        before = pids_with(word)
        # Stopped, the supervisors cannot do their part; killed together with them, nobody else can.
        supervisors = shims_of(mine.pid)
        for pid in supervisors:
            os.kill(pid, signal.SIGSTOP)
        mine.kill()
        mine.wait()
        for pid in supervisors:
            os.kill(pid, signal.SIGKILL)
        # The two programs that they started went with them; what these had hidden is left.
        eventually(lambda: len(pids_with(my_word)) == 4)
        async with running_node(tmp_path / "mine"):
            eventually(lambda: not pids_with(my_word))
        assert pids_with(word) == before


@pytest.mark.asyncio
async def test_a_container_whose_supervisor_is_killed_has_failed_and_is_gone(tmp_path):
    word = uuid.uuid4().hex
    async with running_node(tmp_path) as node:
        node.start(f": {word}; (setsid sh -c ': {word}; sleep 600' &); {FOREVER}")
        await node.wait(is_running)
        [supervisor] = shims_of(os.getpid())
        os.kill(supervisor, signal.SIGKILL)
        status = await node.wait(has_ended)
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
        eventually(lambda: not pids_with(word))


@pytest.mark.asyncio
async def test_what_a_container_left_in_the_background_ends_with_it(tmp_path):
    word = uuid.uuid4().hex
    async with running_node(tmp_path) as node:
        await node.run(f"setsid nohup sh -c ': {word}; sleep 600' & exit 0")
        assert not pids_with(word)


@pytest.mark.asyncio
async def test_when_a_runtime_is_closed_its_processes_have_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(Cgroups, "find", lambda _: Cgroups(()))
    word = uuid.uuid4().hex
    async with running_node(tmp_path) as node:
        node.start(f": {word}; {FOREVER}")
        await node.wait(is_running)
        assert pids_with(word)
    assert not pids_with(word)


@contextmanager
def engine(directory, means):
    word = uuid.uuid4().hex
    command = [sys.executable, "-m", "tests.embedded.runtime.engine_program", str(directory), word, means]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            assert any(line == "ready\n" for line in program.stdout)
            yield program, word
        finally:
            program.kill()
            Cgroups.find(runtime_name(directory)).remove()
