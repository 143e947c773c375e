"""What became of a job: four words, by its conditions, and by its events where those are silent."""

import pytest
from conftest import EVENTS, JOBS, PODS, a_pod, live, says
from hypothesis import given
from hypothesis import strategies as st

from openshift_ai_sdk.training.statuses import (
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    judge_conditions,
    judge_events,
    judge_pods,
)

CREATED = says("Created", "MPIJobCreated", "MPIJob lab/train is created.")
INVALID = {
    "reason": "ValidationError",
    "message": "spec.mpiReplicaSpecs[Worker].replicas: must be at least 1",
    "involvedObject": {"kind": "MPIJob", "name": "train", "uid": "u1"},
}


@pytest.mark.parametrize(
    ("conditions", "value", "detail"),
    [
        ([CREATED], PENDING, "Created: MPIJob lab/train is created."),
        ([CREATED, says("Running", "MPIJobRunning")], RUNNING, "Running: MPIJobRunning"),
        ([says("Succeeded"), CREATED, says("Running", status="False")], SUCCEEDED, "Succeeded"),
        ([says("Failed", "BackoffLimitExceeded"), CREATED], FAILED, "Failed: BackoffLimitExceeded"),
        (
            [CREATED, says("Failed", "MPIJobEvicted", "2/4 workers are evicted")],
            FAILED,
            "Evicted: 2/4 workers are evicted",
        ),
        ([CREATED, says("Suspended", "MPIJobSuspended", "MPIJob suspended")], PENDING, "Suspended: MPIJob suspended"),
        ([says("Suspended", "MPIJobResumed", status="False"), says("Running")], RUNNING, "Running"),
        ([says("Failed", status="False"), says("Running")], RUNNING, "Running"),
    ],
)
def test_conditions_decide_in_whatever_order_they_stand(conditions, value, detail):
    for order in (conditions, conditions[::-1]):
        status = judge_conditions(live(*order))
        assert status is not None
        assert (status.value, status.detail) == (value, detail)


def test_a_job_that_is_to_be_suspended_and_has_no_condition_yet_is_suspended():
    document = live()
    document["spec"]["runPolicy"] = {"suspend": True}
    status = judge_conditions(document) or judge_events(document, []) or judge_pods(document, [])
    assert (status.value, status.detail) == (PENDING, "Suspended")


def test_a_job_that_is_invalid_is_not_called_suspended(server, job):
    document = live()
    document["spec"]["runPolicy"] = {"suspend": True}
    server.on("GET", f"{JOBS}/train", document)
    server.on("GET", EVENTS, {"items": [INVALID]})
    assert job.get_status() == FAILED
    assert job.status_detail.startswith("Invalid: ")


def test_an_invalid_job_has_failed_though_no_condition_says_so():
    status = judge_events(live(), [INVALID])
    assert status is not None
    assert (status.value, status.reason) == (FAILED, "Invalid")
    assert "must be at least 1" in status.detail


def test_an_event_about_an_earlier_job_of_the_same_name_does_not_count():
    earlier = {**INVALID, "involvedObject": {"kind": "MPIJob", "name": "train", "uid": "u0"}}
    assert judge_events(live(), [earlier]) is None


def test_of_a_job_that_nobody_speaks_of_its_pods_tell():
    running = [a_pod(), a_pod("train-worker-0"), a_pod("train-worker-1")]
    evicted = a_pod("train-worker-1", "terminated", exit=1)
    evicted["status"]["reason"] = "Evicted"
    assert judge_pods(live(), []).value == PENDING
    assert judge_pods(live(), running[:2]).value == PENDING
    assert judge_pods(live(), running).value == RUNNING
    assert judge_pods(live(), [*running[:2], evicted]).detail == "Evicted: 1 of 3 pods are evicted"


def test_a_long_message_is_one_line_that_ends():
    status = judge_conditions(live(says("Failed", "x", "word\n" * 1000)))
    assert status is not None
    assert len(status.detail) < 600
    assert "\n" not in status.detail


kinds = ["Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed", "Unheard"]
conditions = st.lists(
    st.builds(
        says, st.sampled_from(kinds), st.text(max_size=5), st.text(max_size=5), st.sampled_from(["True", "False", "?"])
    ),
    max_size=6,
    unique_by=lambda one: one["type"],
)


@given(conditions, st.randoms())
def test_any_conditions_give_one_of_four_words_and_the_same_in_any_order(some, random):
    first = judge_conditions(live(*some))
    random.shuffle(some)
    assert judge_conditions(live(*some)) == first
    true = {one["type"] for one in some if one["status"] == "True"}
    assert (first is None) == (not true - {"Unheard"})
    value = first and first.value
    assert value in (None, PENDING, RUNNING, SUCCEEDED, FAILED)
    assert (value == FAILED) == ("Failed" in true)
    assert (value == SUCCEEDED) == ("Succeeded" in true and "Failed" not in true)
    assert (value == RUNNING) == ("Running" in true and not true & {"Failed", "Succeeded", "Suspended"})


def test_events_and_pods_are_asked_for_only_where_conditions_are_silent(server, job):
    server.on("GET", f"{JOBS}/train", live(CREATED))
    assert job.get_status() == PENDING
    assert server.asked("GET", EVENTS) == server.asked("GET", PODS) == []


def test_a_silent_job_is_judged_by_its_events(server, job):
    server.on("GET", f"{JOBS}/train", live())
    server.on("GET", EVENTS, {"items": [INVALID]})
    assert job.get_status() == FAILED
    assert job.status_detail.startswith("Invalid: spec.mpiReplicaSpecs")
    assert (
        server.asked("GET", EVENTS)[0].query["fieldSelector"] == "involvedObject.kind=MPIJob,involvedObject.name=train"
    )


def test_a_job_whose_pods_are_refused_waits_and_its_detail_says_for_what(server, job):
    refused = {**INVALID, "reason": "MPIJobFailed", "message": "worker pod created failed: it is forbidden"}
    server.on("GET", f"{JOBS}/train", live())
    server.on("GET", EVENTS, {"items": [refused]})
    assert job.get_status() == PENDING
    assert job.status_detail == "Refused: worker pod created failed: it is forbidden"
