"""The engine's own parts as people look for them: pods of kube-system, with logs."""

import json

import pytest

from testbed.building import Programs
from tests.contract.command_line import CommandLine
from tests.contract.refusals import refused
from tests.contract.running import is_ready
from tests.contract.waiting import eventually
from tests.up.making import gpu_pod


@pytest.fixture(scope="module")
def kubectl(engine, tmp_path_factory):
    return CommandLine(Programs()["kubectl"], engine.kubeconfig, tmp_path_factory.mktemp("cache"))


def test_every_node_has_a_device_plugin_that_runs(kubectl):
    listed = kubectl("get", "pods", "-n", "kube-system")
    plugins = [line.split() for line in listed.splitlines() if "device-plugin" in line]
    assert [(name, ready, status) for name, ready, status, *_ in plugins] == [
        ("hami-device-plugin-node-a", "1/1", "Running"),
        ("hami-device-plugin-node-b", "1/1", "Running"),
    ]


def test_the_log_of_a_device_plugin_tells_of_its_cards(kubectl):
    assert "node reported" in kubectl("logs", "-n", "kube-system", "hami-device-plugin-node-a")


def test_the_log_of_the_scheduler_is_found_by_its_deployment(kubectl, pods):
    pods.create(gpu_pod("told", "true", memory_mib=1000))
    log = eventually(lambda: _with("default/told", kubectl("logs", "-n", "kube-system", "deployment/hami-scheduler")))
    assert "pod bound" in log


def test_the_version_of_the_scheduler_is_told(engine):
    told = engine.command("version", "--kubeconfig", str(engine.kubeconfig), "-o", "json")
    versions = json.loads(told.stdout)
    assert versions["schedulers"] == [versions["client"]]


def test_the_scheduler_s_metrics_are_read_by_the_path_that_a_cluster_has(kubectl, pods):
    pods.create(gpu_pod("measured", memory_mib=1000))
    page = "/api/v1/namespaces/kube-system/services/hami-scheduler:metrics/proxy/metrics"
    shown = eventually(lambda: _with('pod="measured"', kubectl("get", "--raw", page)))
    assert "tessera_decides 1.0" in shown
    assert 'hami_gpu_shared_count{zone="vGPU",node="node-a"' in shown


def test_a_component_that_is_deleted_comes_back(kubectl, api):
    kubectl("delete", "pod", "-n", "kube-system", "-l", "tessera.io/component=hami-scheduler")
    kubectl("rollout", "status", "-n", "kube-system", "deployment/hami-scheduler", "--timeout=30s")
    plugins = api.collection("pods", "kube-system")
    former = plugins.get("hami-device-plugin-node-a")["metadata"]["uid"]
    kubectl("delete", "pod", "-n", "kube-system", "hami-device-plugin-node-a")
    made = eventually(lambda: [one for one in plugins.listing()["items"] if is_plugin(one) and is_ready(one)])
    assert made[0]["metadata"]["uid"] != former


def is_plugin(pod):
    return pod["metadata"]["name"] == "hami-device-plugin-node-a"


def test_cards_are_resources_of_the_nodes(api):
    status = api.collection("nodes").get("node-a")["status"]
    assert status["allocatable"]["nvidia.com/gpu"] == status["capacity"]["nvidia.com/gpu"] == "20"


def test_nobody_but_the_scheduler_writes_what_a_pod_was_given(kubectl, pods):
    pods.create(gpu_pod("guarded", "true", memory_mib=1000))
    complaint = kubectl.refusal("annotate", "pod", "guarded", "hami.io/vgpu-node=node-b", "--overwrite")
    assert "expected only the scheduler" in complaint


def test_a_client_that_asks_for_another_protocol_leaves_no_line_in_the_log(engine, api):
    asking = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
    assert api.send("GET", "/healthz", headers=asking).status == 200
    assert "upgrade" not in (engine.state / "logs" / "output.log").read_text()


def test_claims_that_nobody_could_meet_are_refused(api):
    metadata = {"labels": {"app": "db"}}
    template = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "tessera.local/machine"}]}}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    spec = {"selector": {"matchLabels": metadata["labels"]}, "template": template, "volumeClaimTemplates": [claim]}
    with refused(422, "Invalid") as refusal:
        api.collection("apps/v1/statefulsets", "default").create({"metadata": {"name": "db"}, "spec": spec})
    (cause,) = refusal.value.causes
    assert cause["field"] == "spec.volumeClaimTemplates"
    assert "mount an emptyDir or a hostPath" in cause["message"]


def _with(word, text):
    return text if word in text else ""
