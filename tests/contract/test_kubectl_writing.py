"""What people type to change something: apply, create, label, patch, scale, delete, cordon."""

import json

import pytest
import yaml

from tests.contract.custom_resources import DEFINITIONS, definition
from tests.contract.objects import config_map, deployment, pod

pytestmark = pytest.mark.contract(area="kubectl: changing", needed_by="kubectl")


def manifest(*objects):
    return yaml.safe_dump_all(objects)


@pytest.mark.contract(promise="`apply` creates, changes, leaves alone, and removes what the manifest no longer has")
def test_apply_merges_three_ways(kubectl, config_maps):
    first = config_map("settings", {"colour": "red", "shape": "round"})
    assert kubectl("apply", "-f", "-", input=manifest(first)) == "configmap/settings created\n"
    kubectl("annotate", "configmap", "settings", "somebody=else")
    assert kubectl("apply", "-f", "-", input=manifest(first)) == "configmap/settings unchanged\n"
    second = config_map("settings", {"colour": "blue"})
    assert kubectl("apply", "-f", "-", input=manifest(second)) == "configmap/settings configured\n"
    applied = config_maps.get("settings")
    assert applied["data"] == {"colour": "blue"}
    assert applied["metadata"]["annotations"]["somebody"] == "else"


@pytest.mark.contract(
    promise="`apply` of several objects in one file, of built-in kinds with lists", needed_by="kubectl, helm"
)
def test_apply_changes_elements_of_lists(kubectl, deployments):
    web = deployment("web", replicas=0)
    container = web["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    kubectl("apply", "-f", "-", input=manifest(config_map("settings"), web))
    container["env"] = [{"name": "C", "value": "3"}, {"name": "A", "value": "4"}]
    kubectl("apply", "-f", "-", input=manifest(config_map("settings"), web))
    stored = deployments.get("web")["spec"]["template"]["spec"]["containers"][0]["env"]
    assert stored == container["env"]


@pytest.mark.contract(promise="`apply` of a custom resource", needed_by="kubectl, GpuClaim, MPIJob")
def test_apply_changes_a_custom_resource(kubectl, widgets):
    kubectl("apply", "-f", "-", input=manifest(widgets.widget("w", {"count": 1, "ids": [1, 2]})))
    assert "configured" in kubectl("apply", "-f", "-", input=manifest(widgets.widget("w", {"ids": [3]})))
    assert widgets.get("w")["spec"] == {"ids": [3]}


@pytest.mark.contract(
    promise="`apply` of a definition and, when it is served, of what it defines", needed_by="kubectl, GpuClaim"
)
def test_apply_of_a_definition(kubectl, api, unique):
    group = f"{unique}.example"
    defined = definition(group)
    try:
        assert "created" in kubectl("apply", "-f", "-", input=manifest(defined))
        kubectl("wait", "--for=condition=Established", f"crd/widgets.{group}", "--timeout=30s")
        widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}
        assert "created" in kubectl("apply", "-f", "-", input=manifest(widget))
        assert "unchanged" in kubectl("apply", "-f", "-", input=manifest(defined))
    finally:
        api.collection(DEFINITIONS).delete(f"widgets.{group}")


@pytest.mark.contract(promise="A kind that nobody serves is named, and the rest of the manifest is applied")
def test_a_kind_that_nobody_serves(kubectl, config_maps):
    unknown = {"apiVersion": "nobody.example/v1", "kind": "Nothing", "metadata": {"name": "x"}}
    refusal = kubectl.refusal("apply", "-f", "-", input=manifest(unknown, config_map("settings")))
    assert 'no matches for kind "Nothing" in version "nobody.example/v1"' in refusal
    assert config_maps.exists("settings")


@pytest.mark.contract(promise="`apply --server-side` owns fields and reports conflicts", needed_by="kubectl, Compute")
def test_apply_on_the_server_side(kubectl, config_maps):
    config_maps.apply("settings", config_map("settings"), manager="operator")
    blue = manifest(config_map("settings", {"colour": "blue"}))
    refusal = kubectl.refusal("apply", "--server-side", "-f", "-", input=blue)
    assert 'conflict with "operator": .data.colour' in refusal
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=blue)
    assert config_maps.get("settings")["data"] == {"colour": "blue"}


@pytest.mark.contract(promise="`apply --dry-run=server` and `diff` show what would be, and do nothing")
def test_a_dry_run_does_nothing(kubectl, config_maps):
    blue = manifest(config_map("settings", {"colour": "blue"}))
    assert "created (server dry run)" in kubectl("apply", "--dry-run=server", "-f", "-", input=blue)
    assert not config_maps.exists("settings")
    config_maps.create(config_map("settings"))
    assert "+  colour: blue" in kubectl.negative("diff", "-f", "-", input=blue)


@pytest.mark.contract(promise="A manifest with an unknown field is refused before anything is created")
def test_a_manifest_is_validated(kubectl, pods):
    refusal = kubectl.refusal("apply", "-f", "-", input=manifest(pod("worker", spec={"colour": "red"})))
    assert 'unknown field "spec.colour"' in refusal
    assert not pods.exists("worker")


@pytest.mark.contract(promise="`create` from arguments: configmap, secret, serviceaccount, token")
def test_create_makes_objects_from_arguments(kubectl, config_maps, api, namespace):
    kubectl("create", "configmap", "settings", "--from-literal=colour=red")
    assert config_maps.get("settings")["data"] == {"colour": "red"}
    kubectl("create", "secret", "generic", "key", "--from-literal=token=abc")
    assert api.collection("secrets", namespace).get("key")["data"] == {"token": "YWJj"}
    kubectl("create", "serviceaccount", "robot")
    assert kubectl("create", "token", "robot").count(".") == 2
    assert "already exists" in kubectl.refusal("create", "configmap", "settings")


@pytest.mark.contract(promise="`label` and `annotate` add, overwrite and remove", needed_by="kubectl, HAMi clients")
@pytest.mark.parametrize("kind", ["label", "annotate"])
def test_labels_and_annotations_are_changed(kubectl, config_maps, kind):
    field = {"label": "labels", "annotate": "annotations"}[kind]
    config_maps.create(config_map("settings"))
    kubectl(kind, "configmap", "settings", "gpu=on")
    assert "--overwrite is false" in kubectl.refusal(kind, "configmap", "settings", "gpu=off")
    kubectl(kind, "--overwrite", "configmap", "settings", "gpu=off")
    assert config_maps.get("settings")["metadata"][field] == {"gpu": "off"}
    kubectl(kind, "configmap", "settings", "gpu-")
    assert field not in config_maps.get("settings")["metadata"]


@pytest.mark.contract(promise="`patch` of all three kinds, and of a subresource")
def test_patch_of_every_kind(kubectl, deployments, pods):
    deployments.create(deployment("web", replicas=0))
    kubectl("patch", "deployment", "web", "-p", json.dumps({"spec": {"paused": True}}))
    kubectl("patch", "deployment", "web", "--type=merge", "-p", json.dumps({"spec": {"minReadySeconds": 5}}))
    operation = [{"op": "replace", "path": "/spec/revisionHistoryLimit", "value": 3}]
    kubectl("patch", "deployment", "web", "--type=json", "-p", json.dumps(operation))
    spec = deployments.get("web")["spec"]
    assert (spec["paused"], spec["minReadySeconds"], spec["revisionHistoryLimit"]) == (True, 5, 3)
    pods.create(pod("worker"))
    kubectl("patch", "pod", "worker", "--subresource=status", "-p", json.dumps({"status": {"phase": "Failed"}}))
    assert pods.get("worker")["status"]["phase"] == "Failed"


@pytest.mark.contract(promise="`scale` sets replicas, of a custom resource too", needed_by="kubectl, Compute")
def test_scale_sets_the_number(kubectl, deployments, serve):
    deployments.create(deployment("web", replicas=0))
    kubectl("scale", "deployment/web", "--replicas=2")
    assert deployments.get("web")["spec"]["replicas"] == 2
    scale = {"specReplicasPath": ".spec.workers", "statusReplicasPath": ".status.workers"}
    widgets = serve(subresources={"scale": scale})
    widgets.apply("w", widgets.widget("w", {"workers": 1}), manager="test")
    kubectl("scale", f"widgets.{widgets.group}/w", "--replicas=3")
    assert widgets.get("w")["spec"]["workers"] == 3


@pytest.mark.contract(promise="`delete` by name, by label and from a manifest waits until it is done")
def test_delete_waits_until_it_is_gone(kubectl, config_maps, pods):
    for name in ("a", "b"):
        config_maps.create(config_map(name, labels={"run": "x"}))
    pods.create(pod("worker"))
    assert kubectl("delete", "pod", "worker").startswith('pod "worker" deleted')
    kubectl("delete", "-f", "-", input=manifest(config_map("a")))
    kubectl("delete", "configmap", "-l", "run=x")
    assert config_maps.names(labelSelector="run=x") == []
    assert "NotFound" in kubectl.refusal("delete", "pod", "worker")
    kubectl("delete", "pod", "worker", "--ignore-not-found")


@pytest.mark.contract(promise="`delete --cascade=orphan` leaves what was owned")
def test_delete_can_leave_the_pods(kubectl, deployments, api, namespace):
    deployments.create(deployment("web", replicas=0))
    sets = api.collection("apps/v1/replicasets", namespace)
    with sets.watch() as watch:
        watch.until(lambda event: event.type == "ADDED")
    kubectl("delete", "deployment", "web", "--cascade=orphan")
    assert len(sets.names()) == 1


@pytest.mark.contract(promise="`cordon`, `uncordon` and `taint` change a node", needed_by="kubectl, scheduler")
def test_a_node_is_cordoned_and_tainted(kubectl, api, unique, create_for_now):
    nodes = api.collection("nodes")
    create_for_now(nodes, {"metadata": {"name": unique}})
    kubectl("cordon", unique)
    assert nodes.get(unique)["spec"]["unschedulable"] is True
    kubectl("uncordon", unique)
    assert "unschedulable" not in nodes.get(unique)["spec"]
    kubectl("taint", "node", unique, "nvidia.com/gpu=present:NoSchedule")
    assert {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"} in nodes.get(unique)["spec"]["taints"]
    kubectl("taint", "node", unique, "nvidia.com/gpu-")
    assert "nvidia.com/gpu" not in {taint["key"] for taint in nodes.get(unique)["spec"].get("taints", [])}
