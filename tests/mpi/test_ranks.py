"""Ranks that really run: each in its worker, with the numbers that MPI must give."""

import json
from pathlib import Path

import numpy as np
import pytest

from testbed.mpi import Mpi
from tests.contract.waiting import eventually
from tests.mpi.conftest import mpirun, path_with
from tests.mpi.jobs import PATIENCE_S, MpiJobs, an_mpi_job
from tests.mpi.ranks import Alone, train


def test_ranks_on_every_worker_add_up_their_numbers(jobs: MpiJobs, mpi: Mpi) -> None:
    jobs.apply(an_mpi_job("sum", mpirun(mpi, 3, "allreduce"), workers=3, env=path_with(mpi)))
    jobs.until_condition("sum", "Succeeded")
    told = jobs.told("sum")
    assert [one.rank for one in told] == [0, 1, 2]
    assert {one.host for one in told} == {"sum-worker-0", "sum-worker-1", "sum-worker-2"}
    assert {(one.size, one.role, one.found) for one in told} == {(3, "worker", "6")}
    assert jobs.ran_on("sum") == {"sum-worker-0": 1, "sum-worker-1": 1, "sum-worker-2": 1}


def test_training_on_several_workers_finds_what_one_process_finds(jobs: MpiJobs, mpi: Mpi) -> None:
    jobs.apply(an_mpi_job("fit", mpirun(mpi, 4, "train"), workers=2, env=path_with(mpi), slotsPerWorker=2))
    jobs.until_condition("fit", "Succeeded")
    told = jobs.told("fit")
    assert len(told) == 4
    for one in told:
        np.testing.assert_allclose([float(weight) for weight in one.found.split()], train(Alone()), atol=1e-9)
    assert jobs.ran_on("fit") == {"fit-worker-0": 2, "fit-worker-1": 2}


def test_the_implementation_that_a_job_names_decides_the_form_of_its_hostfile(jobs: MpiJobs) -> None:
    show = ["cat", "/etc/mpi/hostfile"]
    for name, implementation in (("o", "OpenMPI"), ("m", "MPICH"), ("i", "Intel")):
        jobs.apply(an_mpi_job(name, show, workers=1, slotsPerWorker=3, mpiImplementation=implementation))
    for name in ("o", "m", "i"):
        jobs.until_condition(name, "Succeeded")
    namespace = jobs.get("o")["metadata"]["namespace"]
    assert jobs.log("o-launcher") == f"o-worker-0.o.{namespace}.svc slots=3\n"
    assert jobs.log("m-launcher") == f"m-worker-0.m.{namespace}.svc:3\n"
    assert jobs.log("i-launcher") == f"i-worker-0.i.{namespace}.svc:3\n"


def test_workers_without_ranks_are_told(jobs: MpiJobs, open_mpi: Mpi) -> None:
    jobs.apply(an_mpi_job("few", mpirun(open_mpi, 1, "allreduce"), env=path_with(open_mpi)))
    jobs.until_condition("few", "Succeeded")
    assert jobs.ran_on("few") == {"few-worker-0": 1, "few-worker-1": 0}


def test_the_launcher_can_be_a_worker_too(jobs: MpiJobs, open_mpi: Mpi) -> None:
    command = mpirun(open_mpi, 3, "allreduce")
    jobs.apply(an_mpi_job("own", command, env=path_with(open_mpi), runLauncherAsWorker=True))
    jobs.until_condition("own", "Succeeded")
    assert [one.host for one in jobs.told("own")] == ["own-launcher", "own-worker-0", "own-worker-1"]


def test_a_launcher_that_is_tried_again_is_found_under_the_same_name(jobs: MpiJobs, tmp_path: Path) -> None:
    script = f"test -e {tmp_path}/again && sleep 1000; touch {tmp_path}/again; exit 1"
    jobs.apply(an_mpi_job("tried", ["sh", "-c", script], workers=1, runLauncherAsWorker=True))

    def hosts() -> list[str]:
        config = json.loads(jobs.kubectl("get", "configmap", "tried-config", "-o", "json"))
        return [line.split(".")[0] for line in config["data"]["discover_hosts.sh"].splitlines()[1:]]

    def second_runs() -> bool:
        others = [pod for name, pod in jobs.pods("tried").items() if name.startswith("tried-launcher-")]
        return [pod["status"]["phase"] for pod in others] == ["Running"]

    eventually(second_runs, timeout_s=PATIENCE_S)
    eventually(lambda: hosts() == ["echo tried-launcher", "echo tried-worker-0"])


def test_two_jobs_run_beside_each_other_and_one_of_them_is_large(jobs: MpiJobs, open_mpi: Mpi) -> None:
    env = path_with(open_mpi)
    jobs.apply(an_mpi_job("large", mpirun(open_mpi, 20, "allreduce"), workers=20, env=env))
    jobs.apply(an_mpi_job("small", mpirun(open_mpi, 2, "allreduce"), env=env))
    for name, hosts, total in (("large", 20, "210"), ("small", 2, "3")):
        jobs.until_condition(name, "Succeeded")
        told = jobs.told(name)
        assert {one.found for one in told} == {total}
        assert len({one.host for one in told}) == hosts


def test_ranks_are_not_bound_to_a_core_that_all_hosts_share(jobs: MpiJobs, mpi: Mpi) -> None:
    command = ["mpirun", "-np", "2", "grep", "Cpus_allowed:", "/proc/self/status"]
    jobs.apply(an_mpi_job("free", command, env=path_with(mpi)))
    jobs.until_condition("free", "Succeeded")
    own = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Cpus_allowed:"))
    assert jobs.log("free-launcher").count(own) == 2


def test_horovodrun_runs_a_python_that_the_machine_does_not_have(jobs: MpiJobs, mpi: Mpi) -> None:
    command = ["horovodrun", "-np", "2", "python", "-c", "print('Hello')"]
    jobs.apply(an_mpi_job("hello", command, env=path_with(mpi)))
    jobs.until_condition("hello", "Succeeded")
    assert jobs.log("hello-launcher").count("Hello") == 2


@pytest.mark.parametrize("launcher", ["mpirun", "mpiexec", "horovodrun"])
def test_a_machine_without_mpi_is_told_in_one_sentence(jobs: MpiJobs, launcher: str) -> None:
    jobs.apply(an_mpi_job("none", [launcher, "-np", "2", "hostname"], run_policy={"backoffLimit": 0}))
    failed = jobs.until_condition("none", "Failed")
    assert "no MPI on this machine: install Open MPI or MPICH" in failed["message"]
    assert "exit code 127" in failed["message"]
    assert "no MPI on this machine" in jobs.log("none-launcher")
