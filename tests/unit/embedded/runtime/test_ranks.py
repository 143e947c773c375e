"""How ranks get into workers: what mpirun says, who is let in, and what becomes of those who come."""

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from tessera.embedded.runtime.ranks.agent import read_arguments, what_is_missing
from tessera.embedded.runtime.ranks.horovodrun import Misused, translate
from tessera.embedded.runtime.ranks.host import furnish
from tessera.embedded.runtime.ranks.meeting import AgentSide, HostSide, Order, meeting_point, new_socket, program_of
from tessera.embedded.runtime.ranks.programs import Programs, write_programs
from tests.contract.waiting import eventually

WORKER = "fit-worker-0"


@pytest.mark.parametrize(
    ("arguments", "host", "command"),
    [
        (["-x", "fit-worker-1.fit.lab.svc", "orted", "-mca", '"x"'], "fit-worker-1", 'orted -mca "x"'),
        (["-o", "ConnectionAttempts=10", "-l", "me", "w", "a", "b"], "w", "a b"),
        (["-oBatchMode=yes", "me@w.domain", "a"], "w", "a"),
    ],
)
def test_arguments_of_ssh_are_understood(arguments: list[str], host: str, command: str) -> None:
    assert read_arguments(arguments) == (host, command)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("-np 2 python train.py", "-np 2 python train.py"),
        ("--num-proc=2 -H a:1,b:1 --verbose python -u x", "-np 2 -H a:1,b:1 python -u x"),
        ("-n 4 --gloo --no-stall-check --hostfile h --start-timeout 30 x", "-np 4 --hostfile h x"),
        ("-np 2 --mpi-threads-disable --log-without-timestamp x", "-np 2 x"),
        ("python x", "python x"),
    ],
)
def test_horovodrun_says_the_same_to_mpirun(said: str, meant: str) -> None:
    assert translate(said.split()) == meant.split()


def test_horovodrun_passes_on_what_is_meant_for_mpirun() -> None:
    said = ["-np", "2", "--mpi-args=--oversubscribe -x 'A=b c'", "--binding-args", "-bind-to none", "python", "x"]
    assert translate(said) == ["-np", "2", "--oversubscribe", "-x", "A=b c", "-bind-to", "none", "python", "x"]
    with pytest.raises(Misused, match='--mpi-args is "\'", expected words for mpirun'):
        translate(["--mpi-args", "'", "python"])


@pytest.mark.parametrize("said", ["-np 2", "-np"])
def test_horovodrun_without_a_program_is_told_what_is_missing(said: str) -> None:
    with pytest.raises(Misused, match="expected"):
        translate(said.split())


def test_programs_are_named_as_people_know_them() -> None:
    prefixed = "PATH=/x/bin:$PATH ; export PATH ; OPAL_PREFIX=/x ; export OPAL_PREFIX; /x/bin/orted -mca ess env"
    assert program_of(prefixed) == "orted"
    assert program_of('"/usr/bin/hydra_pmi_proxy" --control-port 1') == "hydra_pmi_proxy"


def test_a_worker_keeps_its_own_variables_and_learns_where_mpi_lies() -> None:
    own = {"PATH": "/usr/bin", "LD_LIBRARY_PATH": "/cards", "OPAL_PREFIX": "/mine"}
    brought = {
        "PATH": "/mpi/bin:/usr/bin",
        "LD_LIBRARY_PATH": "/mpi/lib",
        "OPAL_PREFIX": "/theirs",
        "OPAL_LIBDIR": "/l",
    }
    assert furnish(own, brought) == {
        "PATH": "/usr/bin:/mpi/bin",
        "LD_LIBRARY_PATH": "/cards:/mpi/lib",
        "OPAL_PREFIX": "/mine",
        "OPAL_LIBDIR": "/l",
    }


def meet(agents_token: str, hosts_token: str) -> Order | None:
    """What the host is ordered to do."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        host = HostSide(theirs, hosts_token)
        pid = os.fork()
        if pid == 0:
            try:
                AgentSide(ours, agents_token).order(Order("true", {}), [0, 1, 2])
            finally:
                os._exit(0)
        ours.close()
        try:
            host.take()
            ordered = host.take()
        finally:
            os.waitpid(pid, 0)
        assert ordered is not None
        for descriptor in ordered[1]:
            os.close(descriptor)
        return ordered[0]


def test_who_knows_the_token_is_let_in() -> None:
    assert meet("secret", "secret") == Order("true", {})


def test_who_does_not_know_the_token_is_told_nothing_and_says_nothing() -> None:
    """The agent finds out first, and leaves without its order."""
    with pytest.raises(ConnectionError):
        meet("secret", "another")


def test_who_orders_without_a_proof_is_not_obeyed() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        host = HostSide(theirs, "secret")
        ours.send(bytes(32))
        host.take()
        socket.send_fds(ours, [bytes(32) + b'["true", {}]'], [0, 1, 2])
        with pytest.raises(PermissionError):
            host.take()


def test_a_stranger_at_the_door_changes_nothing(worker: "Worker") -> None:
    with new_socket() as line:
        line.connect(meeting_point(worker.job, WORKER))
        line.send(b"let me in")
        assert line.recv(64) == b"", "the line is closed without a word"
    agent = worker.enter("exit 2")
    agent.communicate(timeout=30)
    assert agent.returncode == 2


def test_strangers_who_stay_at_the_door_do_not_keep_the_launcher_out(worker: "Worker") -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.prlimit(worker.process.pid, resource.RLIMIT_NOFILE, (200, most))
    with ExitStack() as strangers:
        for _ in range(400):
            strangers.enter_context(new_socket()).connect(meeting_point(worker.job, WORKER))
        agent = worker.enter("exit 5")
        agent.communicate(timeout=30)
        assert agent.returncode == 5


def test_what_somebody_without_a_proof_hands_over_is_not_kept() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        host = HostSide(theirs, "secret")
        ours.send(bytes(32))
        host.take()
        before = len(os.listdir("/proc/self/fd"))
        socket.send_fds(ours, [bytes(32) + b'["true", {}]'], [0, 1, 2])
        with pytest.raises(PermissionError):
            host.take()
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_job_without_a_token_lets_nobody_in() -> None:
    with new_socket() as line, pytest.raises(PermissionError, match="no token"):
        HostSide(line, "")


class Worker:
    """A host that runs, and the way in."""

    def __init__(self, directory: Path) -> None:
        self.board = directory / "board"
        self.board.mkdir()
        (self.board / "token").write_text("secret")
        self.programs: Programs = write_programs(directory / "programs", sys.executable)
        self.job = uuid4().hex
        told = {"TESSERA_MPI_JOB": self.job, "TESSERA_MPI_BOARD": str(self.board)}
        self.environment = {"PATH": os.environ["PATH"], **told}
        host = self.programs.first / "tessera-mpi-host"
        self.process = subprocess.Popen(
            [host],
            env={**self.environment, "TESSERA_MPI_HOST": WORKER, "OWN": "yes"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def enter(self, command: str, host: str = WORKER) -> subprocess.Popen[str]:
        agent = self.programs.first / "tessera-mpi-enter"
        return subprocess.Popen(
            [agent, "-x", f"{host}.fit.lab.svc", command],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path)
    yield worker
    worker.end()


def test_a_command_runs_in_the_worker_and_its_output_and_exit_code_come_back(worker: Worker) -> None:
    agent = worker.enter("echo $OWN $PPID; echo oh >&2; exit 9")
    printed, complaints = agent.communicate(timeout=30)
    assert printed.split() == ["yes", str(worker.process.pid)]
    assert complaints == "oh\n"
    assert agent.returncode == 9


def test_an_agent_may_go_in_the_moment_in_which_what_it_brought_ends(worker: Worker) -> None:
    """The worker is held still meanwhile, so that it learns of both at once."""
    agent = worker.enter("echo $$; exec sleep 1000")
    assert agent.stdout is not None
    pid = int(agent.stdout.readline())
    worker.process.send_signal(signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    agent.kill()
    agent.communicate(timeout=30)
    worker.process.send_signal(signal.SIGCONT)
    last = worker.enter("exit 6")
    last.communicate(timeout=30)
    assert last.returncode == 6


def test_a_signal_passes(worker: Worker) -> None:
    agent = worker.enter("trap 'exit 4' TERM; echo here; while :; do sleep 0.05; done")
    assert agent.stdout is not None
    agent.stdout.readline()
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(30) == 4
    agent.communicate()


def test_who_leaves_without_a_word_takes_what_runs_for_it_along(worker: Worker) -> None:
    agent = worker.enter("echo $$; exec sleep 1000")
    assert agent.stdout is not None
    pid = int(agent.stdout.readline())
    agent.kill()
    agent.communicate()
    eventually(lambda: not Path(f"/proc/{pid}").exists())


def test_ranks_are_seen(worker: Worker) -> None:
    agent = worker.enter("OMPI_COMM_WORLD_RANK=3 sleep 0.3")
    agent.communicate(timeout=30)
    assert '"ranks": [3]' in (worker.board / f"{WORKER}.ranks").read_text()


def test_a_worker_that_has_failed_is_not_waited_for(worker: Worker, capfd: pytest.CaptureFixture[str]) -> None:
    """What the agent says is said where its caller speaks, which here is this process."""
    (worker.board / "fit-worker-1.state").write_text("Failed\nno room on the disk\n")
    agent = worker.enter("true", host="fit-worker-1")
    agent.communicate(timeout=30)
    assert agent.returncode == 255
    assert "worker fit-worker-1 cannot be entered: no room on the disk" in capfd.readouterr().err


def test_a_host_that_is_no_worker_of_the_job_is_not_waited_for(
    worker: Worker, capfd: pytest.CaptureFixture[str]
) -> None:
    (worker.board / "hosts").write_text("fit-worker-0\nfit-worker-1\n")
    agent = worker.enter("true", host="elsewhere")
    agent.communicate(timeout=30)
    assert agent.returncode == 255
    said = capfd.readouterr().err
    assert "host elsewhere cannot be entered: it is no worker of this job" in said
    assert "fit-worker-0, fit-worker-1" in said


def test_a_worker_that_the_job_has_no_longer_is_waited_for_no_longer(
    worker: Worker, capfd: pytest.CaptureFixture[str]
) -> None:
    hosts, state = worker.board / "hosts", worker.board / "fit-worker-1.state"
    hosts.write_text("fit-worker-0\nfit-worker-1\n")
    os.mkfifo(state)
    agent = worker.enter("true", host="fit-worker-1")
    with state.open("w"):  # it is read while the agent waits
        hosts.write_text("fit-worker-0\n")
    agent.communicate(timeout=30)
    assert agent.returncode == 255
    assert "host fit-worker-1 cannot be entered: it is no worker of this job" in capfd.readouterr().err


def test_a_worker_that_runs_something_else_is_not_said_to_be_on_its_way() -> None:
    assert what_is_missing("Pending") == "its pod does not run yet"
    assert "its pod runs, but nothing there lets its launcher in" in what_is_missing("Running")


def test_a_worker_that_comes_late_is_waited_for(worker: Worker) -> None:
    agent = worker.enter("true", host="fit-worker-1")
    listening = new_socket()
    with listening:
        listening.bind(meeting_point(worker.job, "fit-worker-1"))
        listening.listen()
        listening.settimeout(30)
        line, _ = listening.accept()
        with line:
            assert len(line.recv(64)) == 32, "a challenge comes first"
    agent.communicate(timeout=30)
    assert agent.returncode == 255
