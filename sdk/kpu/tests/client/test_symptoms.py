"""What pods and events tell where the operator does not."""

import pytest

from kpu.client.computes import read_event
from kpu.client.symptoms import diagnose
from kpu.client.verdicts import Failed, Waiting


def pod_with(waiting, *, restarts=0, ended=None, conditions=()):
    container = {"name": "server", "restartCount": restarts, "state": {"waiting": waiting}}
    if ended:
        container["lastState"] = {"terminated": ended}
    return {"status": {"containerStatuses": [container], "conditions": [*conditions]}}


@pytest.mark.parametrize(
    ("pod", "verdict"),
    [
        (pod_with({"reason": "ContainerCreating"}), None),
        (pod_with({"reason": "InvalidImageName", "message": "bad"}), Failed("InvalidImageName", "bad")),
        (pod_with({"reason": "ErrImagePull", "message": "i/o timeout"}), Waiting("ErrImagePull", "i/o timeout")),
        (
            pod_with({"reason": "ImagePullBackOff", "message": "x: manifest unknown"}),
            Failed("ImagePullBackOff", "x: manifest unknown"),
        ),
        (
            pod_with({"reason": "ErrImagePull"}),
            Waiting("ErrImagePull", "the image of container server cannot be pulled"),
        ),
        (
            pod_with({"reason": "CrashLoopBackOff"}, restarts=1, ended={"exitCode": 2}),
            Waiting("CrashLoopBackOff", "container server ended with exit code 2, 1 restarts"),
        ),
        (
            pod_with({"reason": "CrashLoopBackOff"}, restarts=2, ended={"exitCode": 137, "reason": "OOMKilled"}),
            Failed("CrashLoopBackOff", "container server ended with exit code 137 (OOMKilled), 2 restarts"),
        ),
        (
            pod_with({"reason": "CreateContainerConfigError", "message": 'secret "t" not found'}),
            Waiting("CreateContainerConfigError", 'secret "t" not found'),
        ),
        ({"status": {"phase": "Running", "containerStatuses": [{"name": "server", "state": {"running": {}}}]}}, None),
        ({}, None),
    ],
)
def test_a_container_that_does_not_run_is_told_with_what_is_known(pod, verdict):
    seen = diagnose([pod], [])
    assert (type(seen), seen) == (type(verdict), verdict)


def test_an_unschedulable_pod_is_waited_for_with_the_schedulers_sentence():
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    assert diagnose([{"status": {"conditions": [unscheduled]}}], []) == Waiting("Unschedulable", "0/1 nodes")


def test_a_pod_that_may_not_be_made_is_told_by_an_event():
    message = "create Pod worker-0 failed: pods is forbidden: exceeded quota: small"
    made, refused = (
        {"metadata": {}, "type": "Normal", "reason": "SuccessfulCreate", "message": "made"},
        {"metadata": {}, "type": "Warning", "reason": "FailedCreate", "message": message},
    )
    assert diagnose([], [read_event(made), read_event(refused)]) == Waiting("QuotaExceeded", message)


def test_what_is_hopeless_comes_before_what_may_get_better():
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    pods = [{"status": {"conditions": [unscheduled]}}, pod_with({"reason": "InvalidImageName", "message": "bad"})]
    assert diagnose(pods, []) == Failed("InvalidImageName", "bad")
