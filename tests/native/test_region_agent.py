"""The number of a process on its node comes from the node's agent, if there is one; nothing needs it."""

import socket
import threading
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.native.machines import CONTEXT_MIB, end, first_lines, region_at

LIMIT_MIB = 2_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
HOLD = "print(alloc(2), flush=True)\ninput()"


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


@contextmanager
def agent(path, answer):
    """Answers everybody so; None is an agent that accepts nobody."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(answer)

        if answer is not None:
            threading.Thread(target=serve, daemon=True).start()
        yield
        listening.shutdown(socket.SHUT_RDWR)


def host_pid(container, **environment):
    with container.start(HOLD, **environment) as program:
        assert first_lines([program])[-1] == "0"
        (process,) = region_at(container.directory / "region").processes
        assert process.pid == program.pid
        end([program])
    return process.host_pid


def test_a_process_is_told_its_number_on_the_node(container, tmp_path):
    with agent(tmp_path / "socket", b"pid 4242\n"):
        assert host_pid(container, TESSERA_AGENT=str(tmp_path / "socket")) == 4242


def test_the_path_of_the_agent_may_be_longer_than_an_address_has_room_for(container, tmp_path):
    long = tmp_path / ("deep" * 40)
    with TemporaryDirectory() as short, agent(Path(short) / "socket", b"pid 4242\n"):
        long.symlink_to(short)
        assert host_pid(container, TESSERA_AGENT=str(long / "socket")) == 4242


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"pid",
        b"pid \n",
        b"pid 12",
        b"nonsense\n",
        b"pid -1\n",
        b"pid 1 2\n",
        b"pid 99999999999\n",
        b"x" * 5000,
        None,
    ],
)
def test_an_agent_that_answers_otherwise_or_not_at_all_hinders_nobody(container, tmp_path, answer):
    with agent(tmp_path / "socket", answer):
        assert host_pid(container, TESSERA_AGENT=str(tmp_path / "socket")) == 0


def test_an_agent_with_a_full_line_hinders_nobody(container, tmp_path):
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as first:
        listening.bind(str(tmp_path / "socket"))
        listening.listen(0)
        first.connect(str(tmp_path / "socket"))
        assert host_pid(container, TESSERA_AGENT=str(tmp_path / "socket")) == 0


def test_without_an_agent_processes_go_on_without_that_number(container, tmp_path):
    assert host_pid(container, TESSERA_AGENT=str(tmp_path / "nobody")) == 0
    assert host_pid(container, TESSERA_AGENT=str(tmp_path / ("long" * 100))) == 0


def test_a_process_is_found_in_the_lists_of_nvml_by_its_number_on_the_node(container, holding, tmp_path):
    """The agent gives it the number of another process here, so that it takes that one's memory for its own."""
    holder = holding(1_000)
    with agent(tmp_path / "socket", b"pid %d\n" % holder.pid):
        script = "cuda.init(); cuda.enter(); print(cuda.free_mib())"
        said = container.run(script, TESSERA_AGENT=str(tmp_path / "socket"))
    assert int(said) < ROOM_MIB - 500


def test_a_child_asks_for_its_own_number(container, tmp_path):
    with agent(tmp_path / "socket", b"pid 4242\n"):
        script = "import os\nassert alloc(2) == 0\nif os.fork() == 0: print(alloc(2), flush=True) or input()\nos.wait()"
        with container.start(script, TESSERA_AGENT=str(tmp_path / "socket")) as program:
            assert first_lines([program]) == ["0"]
            processes = region_at(container.directory / "region").processes
            assert [process.host_pid for process in processes] == [4242, 4242]
            assert len({process.pid for process in processes}) == 2
            program.communicate("\n")
