"""A cluster that does as it is told, and none at all."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import api_server

from openshift_ai_sdk.training import MPIJob

JOBS = "/apis/kubeflow.org/v2beta1/namespaces/lab/mpijobs"
PODS = "/api/v1/namespaces/lab/pods"
EVENTS = "/api/v1/namespaces/lab/events"


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever this machine has: a test that wants a cluster asks for one."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    for name in ("KUBERNETES_SERVICE_HOST", "PROMETHEUS_URL", "PROMETHEUS_TOKEN", "PROMETHEUS_CA_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[api_server.ApiServer]:
    """The cluster of this test. It has no quotas, events and pods until it is told otherwise."""
    with api_server.running() as server:
        kubeconfig = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": {"server": server.url}}],
            "users": [{"name": "me", "user": {"token": "sesame"}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(kubeconfig))
        monkeypatch.setenv("KUBECONFIG", str(path))
        server.on("GET", "/api/v1/namespaces/lab/(resourcequotas|limitranges|events|pods)", {"items": []})
        yield server


@pytest.fixture
def job() -> MPIJob:
    return MPIJob("train", "lab", workers=2, image="mpi", command=["mpirun", "-np", "2", "./train"])


def live(*conditions: dict[str, Any], version: str = "7", **metadata: Any) -> dict[str, Any]:
    """The job as the API server has it."""
    spec = {"mpiReplicaSpecs": {"Launcher": {"template": {}}, "Worker": {"replicas": 2, "template": {}}}}
    head = {"name": "train", "namespace": "lab", "uid": "u1", "resourceVersion": version, **metadata}
    return {"metadata": head, "spec": spec, "status": {"conditions": list(conditions)}}


def says(kind: str, reason: str = "", message: str = "", status: str = "True") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def a_pod(
    name: str = "train-launcher-x", state: str = "running", *, uid: str = "", restarts: int = 0, **more: Any
) -> dict[str, Any]:
    """`state` is its container's: running, terminated or waiting."""
    role = "worker" if "-worker-" in name else "launcher"
    labels = {"training.kubeflow.org/job-name": "train", "training.kubeflow.org/job-role": role}
    phase = {"running": "Running", "waiting": "Pending"}.get(state, "Failed" if more.get("exit") else "Succeeded")
    container = {"name": "mpi", "restartCount": restarts, "state": {state: more.get("about", {})}}
    if state == "terminated":
        container["state"] = {"terminated": {"exitCode": more.get("exit", 0), "reason": more.get("reason", "")}}
    return {
        "metadata": {
            "name": name,
            "uid": uid or name,
            "labels": labels,
            "creationTimestamp": more.get("created", "2026-01-01T00:00:00Z"),
        },
        "spec": {
            "containers": [{"name": "mpi", "image": "mpi"}],
            "nodeName": "node-a",
            "restartPolicy": more.get("restart_policy", "Never"),
        },
        "status": {
            "phase": more.get("phase", phase),
            "containerStatuses": [container],
            "conditions": more.get("conditions", []),
            "startTime": "2026-01-01T00:00:01Z",
        },
    }
