"""Pods as an API server sends them: about 4.5 KB of JSON each, half of it fields that nobody caches."""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

PAGE = 500
MANAGED = ("kubectl-client-side-apply", "kube-scheduler", "kubelet", "kube-controller-manager")


def a_pod(number: int) -> dict[str, Any]:
    node = f"gpu-{number % 1000:04}.cluster.example.internal"
    return {
        "metadata": {
            "name": f"train-{number // 8:05}-worker-{number % 8}",
            "generateName": f"train-{number // 8:05}-worker-",
            "namespace": f"team-{number % 40:02}",
            "uid": _uid(number),
            "resourceVersion": str(1_000_000 + number),
            "creationTimestamp": "2026-11-15T10:00:00Z",
            "labels": {
                "app.kubernetes.io/name": "train",
                "app.kubernetes.io/instance": f"train-{number // 8:05}",
                "batch.kubernetes.io/job-name": f"train-{number // 8:05}",
                "batch.kubernetes.io/job-completion-index": str(number % 8),
            },
            "annotations": {
                "hami.io/vgpu-node": node,
                "hami.io/vgpu-devices-allocated": f"GPU-{_uid(number)},NVIDIA,24576,50:;",
                "hami.io/bind-time": "1763200000",
            },
            "ownerReferences": [_owner(number)],
            "managedFields": [_managed(manager) for manager in MANAGED],
        },
        "spec": _spec(number, node),
        "status": _status(number),
    }


def _uid(number: int) -> str:
    digest = hashlib.md5(str(number).encode()).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def _owner(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": f"train-{number // 8:05}",
        "uid": _uid(number // 8 + 10**6),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _managed(manager: str) -> dict[str, Any]:
    fields = {f"f:{name}": {} for name in ("image", "imagePullPolicy", "name", "resources", "terminationMessagePath")}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-15T10:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": {".": {}, "f:app.kubernetes.io/name": {}, "f:app.kubernetes.io/instance": {}}},
            "f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, **fields}}, "f:restartPolicy": {}},
        },
    }


def _spec(number: int, node: str) -> dict[str, Any]:
    figures = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1", "nvidia.com/gpumem": "24576"}
    access = {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access", "readOnly": True}
    return {
        "nodeName": node,
        "schedulerName": "hami-scheduler",
        "priority": 1000,
        "priorityClassName": "training",
        "serviceAccountName": "default",
        "restartPolicy": "Never",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "nodeSelector": {"gpu.example.com/model": "H200"},
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            },
        ],
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/team/train:2026.11",
                "command": ["python", "-m", "train", "--rank", str(number % 8)],
                "env": [{"name": f"VARIABLE_{index}", "value": f"value-{index}"} for index in range(6)],
                "resources": {"limits": figures, "requests": figures},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}, access],
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "kube-api-access", "emptyDir": {}},
        ],
    }


def _status(number: int) -> dict[str, Any]:
    kinds = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    condition = {"status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-11-15T10:00:10Z"}
    return {
        "phase": "Running",
        "qosClass": "Guaranteed",
        "hostIP": f"10.0.{number % 250}.1",
        "podIP": f"10.1.{number % 250}.{number // 250 % 250}",
        "startTime": "2026-11-15T10:00:01Z",
        "conditions": [{"type": kind, **condition} for kind in kinds],
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "restartCount": 0,
                "started": True,
                "image": "registry.example.com/team/train:2026.11",
                "imageID": f"registry.example.com/team/train@sha256:{_uid(7).replace('-', '') * 2}",
                "containerID": f"containerd://{_uid(number).replace('-', '') * 2}",
                "state": {"running": {"startedAt": "2026-11-15T10:00:09Z"}},
            }
        ],
    }


def list_pages(count: int) -> Iterator[bytes]:
    """The answers to a list in pages, each but the last naming the next."""
    numbers = list(range(count))
    for begin in range(0, count, PAGE):
        more = str(begin + PAGE) if begin + PAGE < count else ""
        metadata = {"resourceVersion": "2000000", "continue": more}
        items = [a_pod(number) for number in numbers[begin : begin + PAGE]]
        yield msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})


def initial_events(count: int) -> Iterator[bytes]:
    """The lines of a watch that begins with everything."""
    for number in range(count):
        yield an_event("ADDED", a_pod(number))
    metadata = {"resourceVersion": "2000000", "annotations": {"k8s.io/initial-events-end": "true"}}
    yield an_event("BOOKMARK", {"metadata": metadata})


def an_event(kind: str, thing: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": kind, "object": {"kind": "Pod", "apiVersion": "v1", **thing}}) + b"\n"
