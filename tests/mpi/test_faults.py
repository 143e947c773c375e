"""What goes wrong while ranks run: nothing hangs, nothing stays behind, and somebody says why."""

import json
import os
import signal
from pathlib import Path
from uuid import uuid4

from testbed.building import Programs
from testbed.mpi import Mpi
from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.embedded.whole_engine import WholeEngine
from tests.mpi.conftest import WITHOUT_MPI, path_with
from tests.mpi.jobs import MpiJobs, an_mpi_job


def marked() -> tuple[str, list[str]]:
    """A mark that no other process has, and a program that is known by it."""
    mark = f"mark-{uuid4().hex}"
    return mark, ["sh", "-c", f": {mark}; trap 'exit 0' TERM; while :; do sleep 0.1; done"]


def count_running(mark: str) -> int:
    """Ranks, and not those who have started them: mpirun has the mark among its arguments too."""
    found = 0
    for entry in os.scandir("/proc"):
        try:
            words = Path(entry.path, "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        found += words[:2] == [b"sh", b"-c"] and mark.encode() in words[2]
    return found


def run_until_ranks_are_there(jobs: MpiJobs, name: str, mpi: Mpi, **options: object) -> str:
    mark, program = marked()
    command = ["mpirun", "-np", "2", *program]
    jobs.apply(an_mpi_job(name, command, env=path_with(mpi), **options))  # type: ignore[arg-type]
    jobs.until_condition(name, "Running")
    eventually(lambda: count_running(mark) == 2)
    return mark


def test_the_exit_code_of_a_rank_is_that_of_the_launcher(jobs: MpiJobs, mpi: Mpi) -> None:
    command = ["mpirun", "-np", "2", "sh", "-c", "exit 7"]
    jobs.apply(an_mpi_job("seven", command, env=path_with(mpi), run_policy={"backoffLimit": 0}))
    assert "exit code 7" in jobs.until_condition("seven", "Failed")["message"]


def test_a_job_that_is_deleted_takes_its_ranks_along(jobs: MpiJobs, mpi: Mpi) -> None:
    mark = run_until_ranks_are_there(jobs, "gone", mpi)
    jobs.delete("gone")
    eventually(lambda: count_running(mark) == 0)
    eventually(lambda: not jobs.pods("gone"))
    left = jobs.kubectl("get", "jobs,configmaps,services,secrets,gpugangs", "-o", "name")
    assert "gone" not in left


def test_a_worker_that_dies_ends_the_job_and_is_told(jobs: MpiJobs, mpi: Mpi) -> None:
    mark = run_until_ranks_are_there(jobs, "dies", mpi, run_policy={"backoffLimit": 0})
    jobs.kubectl("delete", "pod", "dies-worker-1", "--grace-period=0", "--force")
    # Open MPI 5 says that it has lost a host, and ends with 0 all the same.
    jobs.until_condition("dies", "Succeeded" if mpi.name == "openmpi5" else "Failed")
    told = eventually(lambda: jobs.events("dies", "MPIJobWorkerLost"))
    assert told == ["worker dies-worker-1 ended while the job ran, and is made again"]
    eventually(lambda: count_running(mark) == 0)


def test_a_worker_that_cannot_start_fails_the_launcher_with_its_reason(jobs: MpiJobs, open_mpi: Mpi) -> None:
    job = an_mpi_job("broken", ["mpirun", "-np", "2", "true"], env=path_with(open_mpi), run_policy={"backoffLimit": 0})
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["command"] = ["sh", "-c", "echo no disk is left >&2; exit 5"]
    worker["terminationMessagePolicy"] = "FallbackToLogsOnError"
    jobs.apply(job)
    assert (
        "has failed: container worker ended with exit code 5: no disk is left"
        in jobs.until_condition("broken", "Failed")["message"]
    )
    assert "exit code 5: no disk is left" in jobs.log("broken-launcher")


def test_a_launcher_that_is_killed_is_started_again_and_the_first_ranks_are_gone(jobs: MpiJobs, open_mpi: Mpi) -> None:
    mark = run_until_ranks_are_there(jobs, "again", open_mpi)
    first = jobs.pods("again")["again-launcher"]["metadata"]["uid"]
    jobs.kubectl("delete", "pod", "again-launcher", "--grace-period=0", "--force")

    def is_another_one() -> bool:
        launchers = [pod for name, pod in jobs.pods("again").items() if "launcher" in name]
        return bool(launchers) and all(pod["metadata"]["uid"] != first for pod in launchers)

    eventually(is_another_one)
    eventually(lambda: count_running(mark) == 2)


def test_a_job_goes_on_after_its_engine_was_killed(tmp_path: Path, open_mpi: Mpi) -> None:
    engine = WholeEngine(tmp_path, "--nodes", "1", "--cards", "1xA100-SXM4-80GB", environment={"PATH": WITHOUT_MPI})
    assert engine.up().returncode == 0
    try:
        jobs = MpiJobs(CommandLine(Programs()["kubectl"], engine.kubeconfig, tmp_path / "cache"))
        script = f"test -e {tmp_path}/again && exit 0; sleep 1000"
        jobs.apply(an_mpi_job("long", ["mpirun", "-np", "2", "sh", "-c", script], env=path_with(open_mpi)))
        jobs.until_condition("long", "Running")
        eventually(lambda: sum(jobs.ran_on("long").values()) == 2)
        os.kill(engine.process, signal.SIGKILL)
        (tmp_path / "again").touch()
        assert engine.up().returncode == 0
        jobs.until_condition("long", "Succeeded")
        assert json.loads(jobs.kubectl("get", "mpijob", "long", "-o", "json"))["status"]["completionTime"]
    finally:
        engine.down()
