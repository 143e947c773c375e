"""The engine's own parts as people look for them: pods of kube-system, with logs."""

import pytest

from testbed.building import Programs
from tests.contract.command_line import CommandLine
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


def test_a_component_that_is_deleted_comes_back(kubectl):
    kubectl("delete", "pod", "-n", "kube-system", "-l", "tessera.io/component=hami-scheduler")
    kubectl("rollout", "status", "-n", "kube-system", "deployment/hami-scheduler", "--timeout=30s")
    kubectl("delete", "pod", "-n", "kube-system", "hami-device-plugin-node-a", "--wait=false")
    kubectl("wait", "pod", "-n", "kube-system", "hami-device-plugin-node-a", "--for=condition=Ready", "--timeout=30s")


def test_cards_are_resources_of_the_nodes(api):
    status = api.collection("nodes").get("node-a")["status"]
    assert status["allocatable"]["nvidia.com/gpu"] == status["capacity"]["nvidia.com/gpu"] == "20"


def test_nobody_but_the_scheduler_writes_what_a_pod_was_given(kubectl, pods):
    pods.create(gpu_pod("guarded", "true", memory_mib=1000))
    complaint = kubectl.refusal("annotate", "pod", "guarded", "hami.io/vgpu-node=node-b", "--overwrite")
    assert "expected only the scheduler" in complaint


def _with(word, text):
    return text if word in text else ""
