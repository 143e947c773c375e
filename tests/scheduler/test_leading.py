"""Of two extenders one decides; when it is killed the other takes over, and nothing decided before can land."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.cluster import Cluster
from testbed.fixtures import NewCluster
from testbed.requirements import TestbedFailed
from tests.scheduler.conftest import TESSERA, a_pod
from tests.unit.scheduler.cluster import node_document

PATIENCE_S = 60


@pytest.fixture(scope="module")
def cluster(new_cluster: NewCluster) -> Iterator[Cluster]:
    cluster = new_cluster(controllers=False)
    cluster.kubectl("create", "serviceaccount", "default")
    node = {"apiVersion": "v1", "kind": "Node", **node_document("gpu-1", "1xA100-SXM4-80GB")}
    cluster.kubectl("create", "-f", "-", input=json.dumps(node))
    yield cluster
    cluster.stop()


class Replica:
    def __init__(self, cluster: Cluster, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        command = [*TESSERA, "run", "extender", "--leader-elect", "--kubeconfig", str(cluster.kubeconfig)]
        self.log: Path = cluster.machine.logs / f"extender-{port}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*command, "--http", f"127.0.0.1:{port}"], stdout=log, stderr=log)

    def says_ok(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def wait_until_ok(self, path: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.says_ok(path):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def post(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.url}/{verb}", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


def test_a_killed_leader_is_followed_by_one_that_fences_what_waits(cluster: Cluster):
    first = Replica(cluster, 18_101)
    first.wait_until_ok("/readyz")
    second = Replica(cluster, 18_102)
    try:
        second.wait_until_ok("/healthz")
        waiting = {**a_pod("waiting", memory=1000)}
        waiting["spec"]["tolerations"] = [{"operator": "Exists"}]
        cluster.kubectl("create", "-f", "-", input=json.dumps(waiting))
        pod = json.loads(cluster.kubectl("get", "pod", "waiting", "-o", "json"))
        args = {"Pod": pod, "NodeNames": ["gpu-1"]}
        assert first.post("filter", args)["NodeNames"] == ["gpu-1"]
        assert "still reading" in second.post("filter", args)["Error"], "only the leader answers"
        first.process.kill()
        first.process.wait()
        second.wait_until_ok("/readyz")
        fenced = json.loads(cluster.kubectl("get", "pod", "waiting", "-o", "json"))
        assert "tessera.io/fenced-at" in fenced["metadata"]["annotations"]
        with pytest.raises(TestbedFailed, match=r"Conflict|modified|Precondition"):
            bind_late(cluster, pod)
        binding = {"PodName": "waiting", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"], "Node": "gpu-1"}
        assert second.post("bind", binding) == {"Error": ""}
        second.process.terminate()
        assert second.process.wait(timeout=20) == 0
        lease = json.loads(cluster.kubectl("get", "lease", "tessera-scheduler", "-n", "kube-system", "-o", "json"))
        assert not lease["spec"].get("holderIdentity"), "who leaves in order gives the lease back"
    finally:
        for replica in (first, second):
            replica.process.kill()
            replica.process.wait()


def bind_late(cluster: Cluster, pod: dict[str, Any]) -> None:
    """What the killed leader might still have sent."""
    metadata = {name: pod["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion")}
    target = {"apiVersion": "v1", "kind": "Node", "name": "gpu-1"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    path = "/api/v1/namespaces/default/pods/waiting/binding"
    cluster.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(binding))
