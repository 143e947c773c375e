"""The SDK against Kubernetes' own API server with the MPI operator's own CRD: what it takes, and how it refuses."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from openshift_ai_sdk.training import MPIJob, ResourceRequirements
from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.mpi.kubeflow import kubeflow_file
from tests.mpi_sdk.conftest import Server

ADVANCED: dict[str, Any] = {
    "workers": 8,
    "image": "quay.io/my-org/llama-trainer:latest",
    "command": ["bash", "/scripts/train.sh"],
    "args": ["--epochs", "3"],
    "resources": ResourceRequirements(cpu=16, memory="128Gi", gpu=4, gpu_memory_mb=16000, gpu_cores=50),
    "volume_mounts": [{"name": "data", "mountPath": "/data"}],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-pvc"}}],
    "env": {"NCCL_DEBUG": "INFO", "EMPTY": ""},
    "node_selector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "slots_per_worker": 4,
    "clean_pod_policy": "All",
    "active_deadline_seconds": 28800,
    "backoff_limit": 0,
    "ttl_seconds_after_finished": 60,
    "labels": {"app": "training"},
    "annotations": {"owner": "me"},
}


@pytest.fixture
def kubectl(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    yield server.kubectl
    server.kubectl("delete", "mpijobs", "--all")


@pytest.fixture
def user(kubectl: CommandLine, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Somebody who may do nothing, and is whom the SDK acts for."""
    kubectl("create", "serviceaccount", "user")
    token = kubectl("create", "token", "user").strip()
    kubeconfig = yaml.safe_load(server.kubeconfig.read_text())
    kubeconfig["users"] = [{"name": one["name"], "user": {"token": token}} for one in kubeconfig["users"]]
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    yield "lab:user"
    kubectl("delete", "serviceaccount", "user")


@pytest.mark.parametrize("settings", [{"image": "mpi"}, ADVANCED], ids=["least", "most"])
def test_what_the_sdk_writes_is_taken_and_kept_whole(kubectl: CommandLine, settings):
    job = MPIJob("train", "lab", **settings)
    kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=job.to_yaml())
    assert job.create(dry_run=True) is job
    assert kubectl("get", "mpijobs", "-o", "name") == ""
    job.create()
    kept = json.loads(kubectl("get", "mpijob", "train", "-o", "json"))
    assert without_defaults(kept["spec"]) == job.to_dict()["spec"]
    again = MPIJob.get("train", "lab")
    assert again._values() == job._values()
    assert (job.get_status(), again.get_status()) == ("Pending", "Pending")


def test_the_operators_own_example_goes_there_and_comes_back(kubectl: CommandLine):
    text = kubeflow_file("mpijob-pi.yaml").read_text()
    assert yaml.safe_load(MPIJob.from_yaml(text).to_yaml()) == yaml.safe_load(text)
    job = MPIJob.from_yaml(text)
    job.namespace = "lab"
    job.create()
    (listed,) = MPIJob.list("lab")
    assert (listed.name, listed.workers, listed.command) == ("pi", 2, ["mpirun"])
    kubectl("delete", "mpijob", "pi")
    MPIJob.from_yaml(listed.to_yaml()).create()
    assert json.loads(kubectl("get", "mpijob", "pi", "-o", "json"))["spec"] == listed.to_dict()["spec"]


@pytest.mark.usefixtures("kubectl")
def test_a_job_that_is_there_already_is_a_conflict():
    job = MPIJob("train", "lab", image="mpi").create()
    with pytest.raises(ApiException) as caught:
        job.create()
    assert caught.value.status == 409
    assert json.loads(str(caught.value.body))["reason"] == "AlreadyExists"


@pytest.mark.usefixtures("user")
def test_who_may_not_is_told_what():
    with pytest.raises(ApiException) as caught:
        MPIJob("train", "lab", image="mpi").create()
    assert caught.value.status == 403
    assert "cannot create resource" in json.loads(str(caught.value.body))["message"]


@pytest.mark.usefixtures("kubectl")
def test_what_the_crd_refuses_arrives_with_its_reasons():
    document = MPIJob("train", "lab", image="mpi").to_dict()
    document["spec"]["mpiImplementation"] = "Abacus"
    with pytest.raises(ApiException) as caught:
        MPIJob.from_yaml(json.dumps(document)).create()
    assert caught.value.status == 422
    assert "Abacus" in json.loads(str(caught.value.body))["message"]


@pytest.mark.usefixtures("kubectl")
def test_what_is_not_there_is_not_found():
    with pytest.raises(ApiException) as caught:
        MPIJob.get("none", "lab")
    assert (caught.value.status, json.loads(str(caught.value.body))["reason"]) == (404, "NotFound")
    with pytest.raises(ApiException) as caught:
        MPIJob("train", "nowhere", image="mpi").create()
    assert json.loads(str(caught.value.body))["message"] == 'namespaces "nowhere" not found'


def test_a_cluster_without_the_crd_says_so(server: Server):
    assert server.error_before.status == 404
    assert "the cluster serves no MPIJobs" in str(server.error_before)


def test_a_quota_on_pods_is_seen_before_by_whoever_may_read_it(kubectl: CommandLine, user: str):
    kubectl("create", "quota", "gpus", "--hard=requests.nvidia.com/gpu=3")
    eventually(lambda: "gpu" in kubectl("get", "quota", "gpus", "-o", "jsonpath={.status.used}"))
    kubectl("create", "role", "maker", "--verb=create", "--resource=mpijobs.kubeflow.org")
    kubectl("create", "role", "reader", "--verb=list", "--resource=resourcequotas,limitranges")
    kubectl("create", "rolebinding", "maker", "--role=maker", f"--serviceaccount={user}")
    job = MPIJob("train", "lab", workers=2, image="mpi", resources=ResourceRequirements(gpu=2))
    try:
        eventually(lambda: is_created(job))
        kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={user}")
        told = cast(ApiException, eventually(lambda: quota_error(job)))
    finally:
        kubectl("delete", "quota,role,rolebinding", "--all")
    assert told.status == 422
    assert "requests.nvidia.com/gpu: 4 needed, 3 left (0 of 3 used, quota gpus)" in str(told)


def without_defaults(spec: dict[str, Any]) -> dict[str, Any]:
    """What the CRD adds."""
    added = {
        "launcherCreationPolicy": "AtStartup",
        "mpiImplementation": "OpenMPI",
        "runLauncherAsWorker": False,
        "sshAuthMountPath": spec["sshAuthMountPath"],
    }
    policy = {key: value for key, value in spec["runPolicy"].items() if key != "suspend"}
    return {**{key: value for key, value in spec.items() if added.get(key, ...) != value}, "runPolicy": policy}


def is_created(job: MPIJob) -> bool:
    """False while the server does not know the user's rights yet."""
    try:
        return job.create() is job
    except ApiException as error:
        if error.status != 403:
            raise
        return False


def quota_error(job: MPIJob) -> ApiException | None:
    """None while the server does not know the user's rights yet: then the job is there already."""
    with pytest.raises(ApiException) as caught:
        job.create()
    return caught.value if "quota exceeded" in str(caught.value) else None


def test_the_end_of_a_job_is_known_by_its_watch(kubectl: CommandLine):
    job = MPIJob("train", "lab", image="mpi").create()
    told: list[str] = []

    def finish(status: str) -> None:
        told.append(status)
        conditions = [{"type": "Succeeded", "status": "True", "reason": "MPIJobSucceeded", "message": "done"}]
        patch = json.dumps({"status": {"conditions": conditions}})
        kubectl("patch", "mpijob", "train", "--subresource=status", "--type=merge", f"--patch={patch}")

    assert job.wait_for_completion(timeout=60, poll_interval=30, callback=finish) == "Succeeded"
    assert told[0] == "Pending"
    assert job.suspend().resume() is job
