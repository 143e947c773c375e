"""Waiting for a job's end: woken by a watch, patient with a server that is not itself, and clear when it gives up."""

import json
import math
from unittest.mock import patch

import pytest
from api_server import Failure, Stream
from conftest import EVENTS, JOBS, PODS, a_pod, live, says
from kubernetes.client.exceptions import ApiException

from openshift_ai_sdk.training import MPIJob, RanksNotEverywhere

JOB = f"{JOBS}/train"
DONE = live(says("Succeeded"), version="9")


def changed(**more):
    return json.dumps({"type": "MODIFIED", "object": DONE, **more}).encode() + b"\n"


def test_the_end_is_known_at_once_by_a_watch(server, job):
    server.on("GET", JOB, live(says("Running")), DONE)
    server.on("GET", JOBS, Stream((changed(),), until=server.ended))
    assert job.wait_for_completion(timeout=60, poll_interval=60) == "Succeeded"
    (watch,) = server.asked("GET", JOBS)
    assert watch.query["resourceVersion"] == "7"
    assert watch.query["fieldSelector"] == "metadata.name=train"


@pytest.mark.parametrize(
    "broken",
    [
        Failure(403, "may not watch"),
        Failure(410, "too old"),
        Stream((changed(type="ERROR", object={"code": 410}),)),
        Stream((b'{"type": "MODI',), broken=True),
        Stream((b"nonsense\n",)),
        Stream(()),
    ],
)
def test_a_watch_that_does_not_work_is_made_up_for_by_looking(server, job, broken):
    server.on("GET", JOB, live(), live(says("Running")), DONE)
    server.on("GET", JOBS, broken)
    assert job.wait_for_completion(timeout=30, poll_interval=0.1) == "Succeeded"


def test_a_server_that_is_away_for_a_moment_is_waited_for(server, job):
    server.on("GET", JOB, live(), Failure(503, "starting"), Failure(500, "starting"), DONE)
    assert job.wait_for_completion(timeout=30, poll_interval=0.05) == "Succeeded"


def test_a_job_that_fails_is_no_error(server, job):
    server.on("GET", JOB, live(says("Failed", "BackoffLimitExceeded")))
    assert job.wait_for_completion() == "Failed"
    assert job.status_detail == "Failed: BackoffLimitExceeded"


def test_an_invalid_job_is_not_waited_for(server, job):
    server.on("GET", JOB, live())
    server.on(
        "GET", EVENTS, {"items": [{"reason": "ValidationError", "message": "no", "involvedObject": {"uid": "u1"}}]}
    )
    assert job.wait_for_completion() == "Failed"


def test_a_job_that_is_deleted_meanwhile_is_a_clear_error(server, job):
    server.on("GET", JOB, live(), Failure(404, 'mpijobs.kubeflow.org "train" not found', "train"))
    with pytest.raises(ApiException, match="lab/train was deleted while it was waited for") as caught:
        job.wait_for_completion(poll_interval=0.05)
    assert caught.value.status == 404


def test_a_job_that_never_was_is_not_called_deleted(server, job):
    server.on("GET", JOB, Failure(404, 'mpijobs.kubeflow.org "train" not found', "train"))
    with pytest.raises(ApiException) as caught:
        job.wait_for_completion()
    assert (caught.value.status, "deleted" in str(caught.value)) == (404, False)


def test_who_gives_up_says_what_the_job_waits_for(server, job):
    server.on("GET", JOB, live(says("Created")))
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    server.on("GET", PODS, {"items": [a_pod("train-worker-0", "waiting", about=waiting)]})
    with pytest.raises(TimeoutError, match=r"was not done after 0\.3 s: the image of train-worker-0 cannot be pulled"):
        job.wait_for_completion(timeout=0.3, poll_interval=0.1)


def test_no_time_at_all_is_one_look(server, job):
    server.on("GET", JOB, DONE)
    assert job.wait_for_completion(timeout=0) == "Succeeded"


@pytest.mark.parametrize(
    "times", [{"timeout": -1}, {"timeout": "1h"}, {"timeout": math.nan}, {"poll_interval": -1}, {"poll_interval": None}]
)
def test_times_that_are_none_are_refused(job, times):
    with pytest.raises(ValueError, match=r"expected a number of seconds, 0 or more"):
        job.wait_for_completion(**times)


def test_callbacks_are_told_of_each_new_status_and_progress_also_of_what_is_behind_it(server, job, capsys):
    server.on("GET", JOB, live(), live(says("Created")), live(says("Created")), live(says("Running")), DONE)
    told = []
    job.wait_for_completion(poll_interval=0.05, callback=told.append, progress=True)
    assert told == ["Pending", "Running", "Succeeded"]
    shown = [line.partition(" after")[0] for line in capsys.readouterr().err.splitlines()]
    assert shown == [f"lab/train: {status}" for status in ("Pending", "Pending", "Running", "Succeeded")]


def test_ranks_that_did_not_run_everywhere_are_warned_of(server, job):
    done = live(says("Succeeded"), annotations={"tessera.io/ranks-ran-on": '{"train-worker-0": 2}'})
    server.on("GET", JOB, done)
    with pytest.warns(RanksNotEverywhere, match="ranks ran on 1 of 2 workers"):
        job.wait_for_completion()


def test_ranks_everywhere_and_launchers_without_mpi_are_not_warned_of(server, job):
    for noted in ('{"train-worker-0": 1, "train-worker-1": 1}', "{}", "nonsense"):
        server.on("GET", JOB, live(says("Succeeded"), annotations={"tessera.io/ranks-ran-on": noted}))
        assert job.wait_for_completion() == "Succeeded"


def test_a_patched_client_needs_no_cluster():
    answers = [{"status": {}}, {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}]
    with patch("openshift_ai_sdk.training.mpijob.client.CustomObjectsApi") as api:
        api.return_value.get_namespaced_custom_object.side_effect = answers
        job = MPIJob("train", image="mpi").create()
        assert job.wait_for_completion(poll_interval=0) == "Succeeded"
    assert api.return_value.create_namespaced_custom_object.call_args.kwargs["body"] == job.to_dict()


def test_a_double_need_not_say_where_a_job_is():
    with patch("openshift_ai_sdk.training.mpijob.client.CustomObjectsApi") as api:
        api.return_value.get_namespaced_custom_object.return_value = {"spec": {}}
        api.return_value.list_namespaced_custom_object.return_value = {"items": [{"metadata": {"name": "other"}}]}
        found = [MPIJob.get("train", "lab"), *MPIJob.list("lab")]
    assert [(job.name, job.namespace) for job in found] == [("train", "lab"), ("other", "lab")]


def test_a_watch_does_not_outlast_the_time(server, job):
    server.on("GET", JOB, live(says("Running")))
    server.on("GET", JOBS, Stream((), until=server.ended))
    with pytest.raises(TimeoutError):
        job.wait_for_completion(1, 60)


def test_another_job_of_the_same_name_is_not_waited_for(server, job):
    server.on("GET", JOB, live(says("Running")), live(says("Succeeded"), uid="u2"))
    with pytest.raises(ApiException, match="deleted while it was waited for; what is there now is another") as caught:
        job.wait_for_completion(poll_interval=0.05)
    assert caught.value.status == 404


def test_what_a_callback_raises_is_passed_on_as_it_is(server, job):
    server.on("GET", JOB, live(says("Running")))
    with pytest.raises(ApiException) as caught:
        job.wait_for_completion(callback=lambda _: job.get_logs())
    assert "has no launcher pod" in str(caught.value)
    assert "deleted" not in str(caught.value)


def test_a_server_that_does_not_answer_is_asked_once_and_not_waited_for_much_longer(server, job, monkeypatch):
    monkeypatch.setattr("openshift_ai_sdk.training.waiting.LEAST_ANSWER_S", 0.3)

    def hang(_):
        server.ended.wait(10)
        return Stream(())

    server.on("GET", JOB, hang)
    with pytest.raises(ApiException, match="does not answer as an API server does"):
        job.wait_for_completion(timeout=0.1)
    assert len(server.asked("GET", JOB)) == 1
