"""MPIJobs whose workers want cards: all of them or none, and each rank on its worker's own."""

import json

import pytest

from testbed.mpi import Mpi
from tests.contract.waiting import eventually
from tests.embedded.runtime.processes import pids_with
from tests.mpi.conftest import path_with
from tests.mpi.jobs import MpiJobs, an_mpi_job
from tests.up.making import gpu_pod

CARD = {"nvidia.com/gpu": 1}
LAUNCHERS = "--selector=training.kubeflow.org/job-role=launcher"


def test_workers_wait_for_cards_together_and_run_when_there_are_enough(jobs: MpiJobs, open_mpi: Mpi) -> None:
    for name in ("holder-a", "holder-b"):
        jobs.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "Pod", **gpu_pod(name)}))
    eventually(lambda: jobs.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.phase}") == "Running Running")
    command = ["mpirun", "-np", "3", "sh", "-c", "echo card $NVIDIA_VISIBLE_DEVICES"]
    jobs.apply(an_mpi_job("gang", command, workers=3, env=path_with(open_mpi), limits=CARD))

    def reasons() -> list[str]:
        workers = [pod for name, pod in jobs.pods("gang").items() if "worker" in name]
        said = [one for pod in workers for one in pod["status"].get("conditions", []) if one["type"] == "PodScheduled"]
        return [one["message"] for one in said if "does not fit as a whole" in one.get("message", "")]

    eventually(lambda: len(reasons()) == 3)
    assert all("nodeName" not in pod["spec"] for name, pod in jobs.pods("gang").items() if "worker" in name)
    assert "2 of 3 members find a place" in reasons()[0]
    jobs.kubectl("delete", "pod", "holder-a")
    jobs.until_condition("gang", "Succeeded")
    assert jobs.log("gang-launcher").count("card GPU-") == 3
    jobs.kubectl("delete", "pod", "holder-b")


def test_ranks_see_the_cards_of_their_workers_and_launchers_none(jobs: MpiJobs, mpi: Mpi) -> None:
    script = "echo launcher has [$NVIDIA_VISIBLE_DEVICES]; mpirun -np 2 sh -c 'echo rank has [$NVIDIA_VISIBLE_DEVICES]'"
    jobs.apply(an_mpi_job("own", ["sh", "-c", script], env=path_with(mpi), limits=CARD))
    jobs.until_condition("own", "Succeeded")
    log = jobs.log("own-launcher")
    assert "launcher has []" in log
    assert len({line for line in log.splitlines() if line.startswith("rank has [GPU-")}) == 2


@pytest.mark.parametrize("waits_for", ["gang", "workers"])
def test_a_job_that_is_made_smaller_while_it_waits_runs_with_the_workers_that_are_left(
    jobs: MpiJobs, open_mpi: Mpi, waits_for: str
) -> None:
    """A launcher that has read the former hosts by then fails, and another takes its place."""
    command = ["mpirun", "-np", "2", "hostname"]
    jobs.apply(an_mpi_job("shrinks", command, workers=5, env=path_with(open_mpi), limits=CARD))
    gang = ("get", "gpugangs", "-o", "jsonpath={.items[*].spec.minMember}")
    eventually(lambda: jobs.kubectl(*gang) == "5")
    if waits_for == "workers":
        eventually(lambda: pids_with("shrinks-worker-4"))
    fewer = json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}})
    jobs.kubectl("patch", "mpijob", "shrinks", "--type=merge", f"--patch={fewer}")
    jobs.until_condition("shrinks", "Succeeded")
    done = jobs.kubectl("get", "pods", "-o", "name", LAUNCHERS, "--field-selector=status.phase=Succeeded")
    assert {"shrinks-worker-0", "shrinks-worker-1"} <= set(jobs.log(done.strip()).split())
