"""MPIJobs from their beginning to their end, as MPI Operator 0.8 would tell of them."""

import json

from testbed.mpi import Mpi
from tests.contract.waiting import eventually
from tests.mpi.conftest import path_with
from tests.mpi.jobs import MpiJobs, an_mpi_job, condition_of

FOREVER = ["sleep", "1000"]


def conditions(jobs: MpiJobs, name: str) -> dict[str, tuple[str, str]]:
    found = jobs.get(name)["status"]["conditions"]
    return {one["type"]: (one["status"], one["reason"]) for one in found}


def test_a_job_that_ends_well_is_told_from_creation_to_success(jobs: MpiJobs) -> None:
    jobs.apply(an_mpi_job("well", ["true"]))
    jobs.until_condition("well", "Succeeded")
    job = jobs.until(
        "well", lambda job: job["status"]["replicaStatuses"] == {"Launcher": {"succeeded": 1}, "Worker": {}}
    )
    assert conditions(jobs, "well") == {
        "Created": ("True", "MPIJobCreated"),
        "Running": ("False", "MPIJobSucceeded"),
        "Succeeded": ("True", "MPIJobSucceeded"),
    }
    assert job["status"]["startTime"] <= job["status"]["completionTime"]
    namespace = job["metadata"]["namespace"]
    assert condition_of(job, "Succeeded")["message"] == f"MPIJob {namespace}/well successfully completed."
    assert jobs.events("well", "MPIJobSucceeded") == [f"MPIJob {namespace}/well successfully completed."]


def test_pods_have_the_names_and_labels_of_the_operator(jobs: MpiJobs) -> None:
    jobs.apply(an_mpi_job("named", FOREVER))
    jobs.until_condition("named", "Running")
    pods = jobs.pods("named")
    roles = {name: pod["metadata"]["labels"]["training.kubeflow.org/job-role"] for name, pod in pods.items()}
    assert roles == {"named-launcher": "launcher", "named-worker-0": "worker", "named-worker-1": "worker"}
    worker = pods["named-worker-1"]
    assert worker["metadata"]["labels"]["training.kubeflow.org/operator-name"] == "mpi-operator"
    assert worker["metadata"]["labels"]["training.kubeflow.org/replica-index"] == "1"
    assert (worker["spec"]["hostname"], worker["spec"]["subdomain"]) == ("named-worker-1", "named")
    assert worker["metadata"]["ownerReferences"][0]["kind"] == "MPIJob"
    assert jobs.get("named")["status"]["replicaStatuses"] == {"Launcher": {"active": 1}, "Worker": {"active": 2}}


def test_pods_of_a_job_know_each_other_by_name(jobs: MpiJobs) -> None:
    script = "until getent hosts names-worker-1; do sleep 0.1; done"
    jobs.apply(an_mpi_job("names", ["sh", "-c", script]))
    jobs.until_condition("names", "Succeeded")
    assert "names-worker-1" in jobs.log("names-launcher")


def test_clean_pod_policy_decides_which_workers_go(jobs: MpiJobs) -> None:
    for name, policy in (("keep", "None"), ("running", "Running"), ("all", "All")):
        job = an_mpi_job(name, ["true"], workers=1, run_policy={"cleanPodPolicy": policy})
        jobs.apply(job)
    for name in ("keep", "running", "all"):
        jobs.until_condition(name, "Succeeded")
    eventually(lambda: list(jobs.pods("running")) == ["running-launcher"])
    eventually(lambda: list(jobs.pods("all")) == ["all-launcher"])
    assert set(jobs.pods("keep")) == {"keep-launcher", "keep-worker-0"}


def test_a_suspended_job_has_no_pods_and_goes_on_when_it_is_resumed(jobs: MpiJobs) -> None:
    jobs.apply(an_mpi_job("pause", FOREVER, workers=1, run_policy={"backoffLimit": 0}))
    jobs.until_condition("pause", "Running")
    jobs.patch_run_policy("pause", suspend=True)
    jobs.until_condition("pause", "Suspended")
    eventually(lambda: not jobs.pods("pause"))
    assert conditions(jobs, "pause")["Running"] == ("False", "MPIJobSuspended")
    jobs.patch_run_policy("pause", suspend=False)
    jobs.until_condition("pause", "Running")
    assert conditions(jobs, "pause")["Suspended"] == ("False", "MPIJobResumed")


def test_a_job_that_begins_suspended_starts_nothing(jobs: MpiJobs) -> None:
    jobs.apply(an_mpi_job("later", ["true"], run_policy={"suspend": True}))
    jobs.until_condition("later", "Suspended")
    eventually(lambda: "later-launcher" in jobs.kubectl("get", "jobs", "-o", "name"))
    assert not jobs.pods("later")
    jobs.patch_run_policy("later", suspend=False)
    jobs.until_condition("later", "Succeeded")


def test_a_launcher_that_fails_takes_its_job_with_it_and_says_why(jobs: MpiJobs) -> None:
    jobs.apply(an_mpi_job("ill", ["sh", "-c", "echo the data is gone >&2; exit 3"], run_policy={"backoffLimit": 0}))
    failed = jobs.until_condition("ill", "Failed")
    assert failed["reason"] == "BackoffLimitExceeded"
    assert "exit code 3: the data is gone" in failed["message"]
    assert jobs.events("ill", "BackoffLimitExceeded") == [failed["message"]]


def test_a_job_past_its_deadline_fails(jobs: MpiJobs) -> None:
    jobs.apply(an_mpi_job("slow", FOREVER, workers=1, run_policy={"activeDeadlineSeconds": 1}))
    assert jobs.until_condition("slow", "Failed")["reason"] == "DeadlineExceeded"


def test_after_its_time_the_launcher_goes_and_the_job_stays(jobs: MpiJobs) -> None:
    jobs.apply(an_mpi_job("brief", ["true"], workers=1, run_policy={"ttlSecondsAfterFinished": 0}))
    jobs.until_condition("brief", "Succeeded")
    eventually(lambda: not jobs.pods("brief"))
    eventually(lambda: "brief" not in jobs.kubectl("get", "jobs", "-o", "name"))
    assert condition_of(jobs.get("brief"), "Succeeded")["status"] == "True"


def test_a_launcher_may_wait_for_ready_workers(jobs: MpiJobs) -> None:
    job = an_mpi_job("wait", ["true"], launcherCreationPolicy="WaitForWorkersReady")
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["readinessProbe"] = {"exec": {"command": ["false"]}, "periodSeconds": 1}
    jobs.apply(job)
    eventually(lambda: [pod["status"]["phase"] for pod in jobs.pods("wait").values()] == ["Running", "Running"])
    assert "wait-launcher" not in jobs.kubectl("get", "jobs", "-o", "name")


def test_a_job_of_another_manager_is_left_alone(jobs: MpiJobs) -> None:
    jobs.apply(an_mpi_job("theirs", ["true"], run_policy={"managedBy": "kueue.x-k8s.io/multikueue"}))
    jobs.apply(an_mpi_job("ours", ["true"], run_policy={"managedBy": "kubeflow.org/mpi-operator"}))
    jobs.until_condition("ours", "Succeeded")
    assert "status" not in jobs.get("theirs")
    assert not jobs.pods("theirs")


def test_what_the_operator_refuses_is_told_by_an_event_alone(jobs: MpiJobs) -> None:
    jobs.apply(an_mpi_job("nobody", ["true"], workers=0))
    jobs.apply(an_mpi_job("x" * 55, ["true"]))
    told = eventually(lambda: jobs.events("nobody", "ValidationError"))
    assert told == [
        "Found validation errors: spec.mpiReplicaSpecs[Worker].replicas: Invalid value: 0:"
        " must be greater than or equal to 1"
    ]
    assert "no more than 63 characters" in eventually(lambda: jobs.events("x" * 55, "ValidationError"))[0]
    assert "status" not in jobs.get("nobody")


def test_nothing_is_taken_that_is_somebody_elses(jobs: MpiJobs, open_mpi: Mpi) -> None:
    jobs.kubectl("create", "configmap", "taken-config", "--from-literal=whose=mine")
    jobs.apply(an_mpi_job("taken", ["mpirun", "-np", "2", "true"], env=path_with(open_mpi)))
    told = eventually(lambda: jobs.events("taken", "ErrResourceExists"))
    assert told == ['Resource "taken-config" of Kind "ConfigMap" already exists and is not managed by MPIJob']
    config = json.loads(jobs.kubectl("get", "configmap", "taken-config", "-o", "json"))
    assert config["data"] == {"whose": "mine"}
    jobs.kubectl("delete", "configmap", "taken-config")
    jobs.until_condition("taken", "Succeeded")


def test_a_quota_holds_a_job_back_until_it_is_raised(jobs: MpiJobs) -> None:
    jobs.kubectl("create", "quota", "tight", "--hard=pods=1")
    jobs.apply(an_mpi_job("many", ["true"]))
    assert "exceeded quota" in eventually(lambda: jobs.events("many", "MPIJobFailed"))[0]
    jobs.kubectl("delete", "quota", "tight")
    jobs.until_condition("many", "Succeeded")
