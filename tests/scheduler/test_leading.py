"""Of two extenders one decides; when it is killed the other takes over, and nothing decided before can land."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.cluster import Cluster
from testbed.fixtures import NewCluster
from testbed.requirements import TestbedFailed
from tests.scheduler.conftest import a_pod
from tests.scheduler.extender_process import ExtenderProcess
from tests.unit.scheduler.cluster import node_document


@pytest.fixture(scope="module")
def cluster(new_cluster: NewCluster) -> Iterator[Cluster]:
    cluster = new_cluster(controllers=False)
    cluster.kubectl("create", "serviceaccount", "default")
    node = {"apiVersion": "v1", "kind": "Node", **node_document("gpu-1", "1xA100-SXM4-80GB")}
    cluster.kubectl("create", "-f", "-", input=json.dumps(node))
    yield cluster
    cluster.stop()


def a_replica(cluster: Cluster, port: int) -> ExtenderProcess:
    log = cluster.machine.logs / f"extender-{port}.log"
    return ExtenderProcess(cluster.kubeconfig, f"127.0.0.1:{port}", log, "--leader-elect")


def test_a_killed_leader_is_followed_by_one_that_fences_what_waits(cluster: Cluster):
    first = a_replica(cluster, 18_101)
    first.wait_until_ok("/readyz")
    second = a_replica(cluster, 18_102)
    try:
        second.wait_until_ok("/healthz")
        waiting = {**a_pod("waiting", memory=1000)}
        waiting["spec"]["tolerations"] = [{"operator": "Exists"}]
        cluster.kubectl("create", "-f", "-", input=json.dumps(waiting))
        pod = json.loads(cluster.kubectl("get", "pod", "waiting", "-o", "json"))
        args = {"Pod": pod, "NodeNames": ["gpu-1"]}
        assert first.post("filter", args)["NodeNames"] == ["gpu-1"]
        assert "still reading" in second.post("filter", args)["Error"], "only the leader answers"
        first.kill()
        second.wait_until_ok("/readyz")
        fenced = json.loads(cluster.kubectl("get", "pod", "waiting", "-o", "json"))
        assert "tessera.io/fenced-at" in fenced["metadata"]["annotations"]
        with pytest.raises(TestbedFailed, match=r"Conflict|modified|Precondition"):
            bind_late(cluster, pod)
        binding = {"PodName": "waiting", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"], "Node": "gpu-1"}
        assert second.post("bind", binding) == {"Error": ""}
        second.stop()
        lease = json.loads(cluster.kubectl("get", "lease", "tessera-scheduler", "-n", "kube-system", "-o", "json"))
        assert not lease["spec"].get("holderIdentity"), "who leaves in order gives the lease back"
    finally:
        for replica in (first, second):
            replica.kill()


def bind_late(cluster: Cluster, pod: dict[str, Any]) -> None:
    """What the killed leader might still have sent."""
    metadata = {name: pod["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion")}
    target = {"apiVersion": "v1", "kind": "Node", "name": "gpu-1"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    path = "/api/v1/namespaces/default/pods/waiting/binding"
    cluster.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(binding))
