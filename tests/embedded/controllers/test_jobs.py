"""Jobs with pods that succeed at once on the simulated node, or that a test lets fail."""

import pytest

from tests.contract.api import MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.waiting import eventually
from tests.embedded.controllers.workloads import condition_when, job


@pytest.fixture
def jobs(of):
    return of("batch/v1/jobs")


def test_an_indexed_job_gives_each_pod_its_number(jobs, pods):
    jobs.create(job("many", completions=4, parallelism=2, completionMode="Indexed"))
    condition_when(jobs, "many", "Complete")
    status = jobs.get("many")["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (4, "0-3")
    made = pods.listing(labelSelector="batch.kubernetes.io/job-name=many")["items"]
    numbers = {one["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for one in made}
    assert (len(made), numbers) == (4, {"0", "1", "2", "3"})
    first = made[0]
    assert first["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    index = first["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]
    assert first["spec"]["hostname"] == f"many-{index}"


def test_a_job_has_no_more_pods_at_a_time_than_it_may(jobs, active):
    jobs.create(job("wide", runs=False, completions=5, parallelism=2))
    eventually(lambda: jobs.get("wide").get("status", {}).get("active") == 2)
    assert len(active()) == 2


def test_a_job_that_is_suspended_stops_its_pods_and_resumes(jobs, active):
    jobs.create(job("later", runs=False, suspend=True))
    condition_when(jobs, "later", "Suspended")
    assert active() == []
    jobs.patch("later", MERGE_PATCH, {"spec": {"suspend": False}})
    eventually(lambda: len(active()) == 1)
    jobs.patch("later", MERGE_PATCH, {"spec": {"suspend": True}})
    eventually(lambda: active() == [])


def test_a_job_past_its_deadline_has_failed_and_its_pods_are_gone(jobs, active):
    jobs.create(job("slow", runs=False, activeDeadlineSeconds=1))
    assert condition_when(jobs, "slow", "Failed")["reason"] == "DeadlineExceeded"
    assert active() == []


def test_a_job_that_is_over_goes_when_its_time_has_come(jobs, pods):
    jobs.create(job("brief", ttlSecondsAfterFinished=1))
    eventually(lambda: not jobs.exists("brief"))
    eventually(lambda: pods.names() == [])


def test_a_job_gives_up_after_so_many_failures(jobs, pods, active):
    jobs.create(job("broken", runs=False, backoffLimit=1, parallelism=2, completions=2))
    eventually(lambda: len(active()) == 2)
    for name in pods.names():
        pods.patch(f"{name}/status", STRATEGIC_PATCH, {"status": {"phase": "Failed"}})
    assert condition_when(jobs, "broken", "Failed")["reason"] == "BackoffLimitExceeded"
    assert jobs.get("broken")["status"]["failed"] == 2
    assert active() == []


def test_a_job_that_somebody_else_manages_is_left_alone(jobs, pods):
    jobs.create(job("theirs", managedBy="test.example/controller"))
    jobs.create(job("ours"))
    condition_when(jobs, "ours", "Complete")
    assert pods.names(labelSelector="batch.kubernetes.io/job-name=theirs") == []
    assert jobs.get("theirs").get("status", {}) == {}
