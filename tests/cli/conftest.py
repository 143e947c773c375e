"""Commands as people run them, against a cluster with nodes that have registered and pods that hold cards."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tessera.views.documents import ViewedNode
from testbed.cluster import Cluster
from testbed.fixtures import NewCluster, clusters
from tests.unit.scheduler.cluster import node_document
from tests.unit.views.making import uuids_of

TESSERA = (sys.executable, "-m", "tessera.apps.cli")
DEADLINE_S = 30
PLAN = "2xA100-SXM4-80GB"
REFUSAL = "0/2 nodes are available: 2 no card has 90000 MiB free, the roomiest has 81920 MiB."


class Commands:
    """`tessera` as the administrator of a cluster, or as another user of it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def run(self, *arguments: str, user: str = "") -> subprocess.CompletedProcess[str]:
        command, around = [*TESSERA, *arguments], self.environment(user)
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=around)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        command, around = [*TESSERA, *arguments], self.environment()
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=around)

    def environment(self, user: str = "") -> dict[str, str]:
        return os.environ | {"KUBECONFIG": str(self.kubeconfig_of(user))}

    def kubeconfig_of(self, user: str) -> Path:
        return self.cluster.control_plane.kubeconfig_for(user) if user else self.cluster.kubeconfig

    @contextmanager
    def watching(self, *arguments: str) -> Iterator["Watched"]:
        """The command runs for as long as the block lasts, at most."""
        process = self.start(*arguments)
        try:
            yield Watched(process)
        finally:
            process.kill()
            process.wait()

    def delete_pod(self, name: str) -> None:
        """At once: there is no kubelet that would end it."""
        self.cluster.kubectl("delete", "pod", name, "--force", "--grace-period=0")

    def create(self, *objects: dict[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.cluster.kubectl("create", "-f", "-", input=json.dumps(items))


class Watched:
    """What a command prints while it runs; ended with Ctrl-C."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, *words: str) -> str:
        """The first line that has all these words."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            for line in list(self._lines):
                if all(word in line for word in words):
                    return line
            time.sleep(0.05)
        raise AssertionError(f"no line with {words} after {DEADLINE_S} s: {self._lines}")

    def interrupt(self) -> tuple[int, str]:
        """The exit code and what was said on stderr."""
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)
        assert self._process.stderr is not None
        with self._process.stderr as stderr:
            return code, stderr.read().strip()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            self._lines.extend(iter(stdout.readline, ""))


def a_pod(name: str, memory: int, *, node: str = "", uuid: str = "", namespace: str = "default") -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(memory)}
    given = {"hami.io/vgpu-devices-allocated": f"{uuid},NVIDIA,{memory},0:;"} if uuid else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}, "annotations": given},
        "spec": {
            "schedulerName": "hami-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "nothing", "resources": {"limits": limits}}],
            **({"nodeName": node} if node else {}),
        },
    }


def cards_of(node: dict[str, Any]) -> list[str]:
    return uuids_of(msgspec.convert(node, ViewedNode))


def _fill(commands: Commands) -> None:
    """Two nodes with two cards each; one pod on one of them, one that waits, one in another namespace."""
    kubectl = commands.cluster.kubectl
    kubectl("create", "namespace", "infer")
    for namespace in ("default", "infer"):
        kubectl("create", "serviceaccount", "default", "--namespace", namespace)
    nodes = [node_document(name, PLAN) for name in ("gpu-a", "gpu-b")]
    at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    for node in nodes:
        node["metadata"]["annotations"]["hami.io/node-handshake"] = f"Reported {at}"
    nodes[1]["metadata"]["labels"]["pool"] = "b"
    first = cards_of(nodes[0])[0]
    commands.create(
        *nodes,
        a_pod("half", 40_000, node="gpu-a", uuid=first),
        a_pod("too-much", 90_000),
        a_pod("small", 1_000, node="gpu-b", uuid=cards_of(nodes[1])[1], namespace="infer"),
    )
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": REFUSAL}
    status = {"status": {"conditions": [{**said, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
    kubectl("patch", "pod", "too-much", "--subresource=status", "-p", json.dumps(status))


new_cluster = pytest.fixture(scope="package")(clusters)


@pytest.fixture(scope="module")
def bare(new_cluster: NewCluster) -> Iterator[Commands]:
    """An API server alone with nothing of ours: nobody acts on what it keeps."""
    cluster = new_cluster(controllers=False)
    yield Commands(cluster)
    cluster.stop()


@pytest.fixture(scope="module")
def filled(bare: Commands) -> Commands:
    _fill(bare)
    return bare
