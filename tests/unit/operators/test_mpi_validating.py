"""What the MPI operator would refuse is refused in its words."""

from typing import Any

import pytest

from tessera.operators.mpi_validating import explain_refusal
from tests.unit.operators.mpi_making import a_job

SPECS = "spec.mpiReplicaSpecs"


def test_a_job_that_can_run_is_not_refused() -> None:
    assert explain_refusal(a_job()) == ""
    assert explain_refusal(a_job(workers=None)) == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workers": 0}, f"{SPECS}[Worker].replicas: Invalid value: 0: must be greater than or equal to 1"),
        ({"slotsPerWorker": -1}, "spec.slotsPerWorker: Invalid value: -1: must be greater than or equal to 0"),
        ({"sshAuthMountPath": ""}, "spec.sshAuthMountPath: Required value: must have a mount path for SSH credentials"),
        (
            {"runPolicy": {"cleanPodPolicy": "Some"}},
            'spec.runPolicy.cleanPodPolicy: Unsupported value: "Some": supported values: "All", "None", "Running"',
        ),
        (
            {"runPolicy": {"backoffLimit": -2}},
            "spec.runPolicy.backoffLimit: Invalid value: -2: must be greater than or equal to 0",
        ),
        (
            {"runPolicy": {"managedBy": "me"}},
            'spec.runPolicy.managedBy: Unsupported value: "me": supported values: "kubeflow.org/mpi-operator",'
            ' "kueue.x-k8s.io/multikueue"',
        ),
        (
            {"mpiReplicaSpecs": {}},
            f"{SPECS}[Launcher]: Required value: must have Launcher replica spec",
        ),
        (
            {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": []}}}}},
            f"{SPECS}[Launcher].template.spec.containers: Required value: must define at least one container",
        ),
    ],
)
def test_each_mistake_has_its_sentence(changes: dict[str, Any], words: str) -> None:
    assert explain_refusal(a_job(**changes)) == f"Found validation errors: {words}"


@pytest.mark.parametrize("policy", ["Always", "ExitCode"])
def test_only_two_policies_of_restarting_are_known(policy: str) -> None:
    container = {"name": "main"}
    launcher = {"restartPolicy": policy, "template": {"spec": {"containers": [container]}}}
    refusal = explain_refusal(a_job(mpiReplicaSpecs={"Launcher": launcher}))
    assert refusal.endswith(f'Unsupported value: "{policy}": supported values: "Never", "OnFailure"')


@pytest.mark.parametrize(("length", "workers", "is_refused"), [(54, 10, False), (55, 10, True), (54, 11, True)])
def test_the_name_of_the_last_worker_must_fit_a_label(length: int, workers: int, is_refused: bool) -> None:
    assert ("no more than 63" in explain_refusal(a_job("x" * length, workers=workers))) is is_refused


@pytest.mark.parametrize("name", ["9lives", "with.dot", "-dash"])
def test_a_name_must_make_a_host_name(name: str) -> None:
    assert "DNS-1035 label" in explain_refusal(a_job(name))


def test_several_mistakes_are_told_together_and_within_limits() -> None:
    refusal = explain_refusal(a_job("9" * 200, workers=0, slotsPerWorker=-1))
    assert refusal.startswith("Found validation errors: [metadata.name")
    assert len(refusal) <= 1024
