"""What people type to look: get, describe, explain, wait."""

import json

import pytest
import yaml

from tests.contract.api import MERGE_PATCH
from tests.contract.objects import config_map, pod

pytestmark = pytest.mark.contract(area="kubectl: looking", needed_by="kubectl")

CLAIM_NAMES = {
    "plural": "widgets",
    "singular": "widget",
    "kind": "Widget",
    "shortNames": ["gizmo"],
    "categories": ["gadgets"],
}
CLAIM_SCHEMA = {
    "spec": {
        "type": "object",
        "description": "What is wanted",
        "properties": {"count": {"type": "integer", "description": "Number of GPUs needed"}},
    },
    "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
}
CLAIM_COLUMNS = [
    {"name": "Count", "type": "integer", "jsonPath": ".spec.count"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
]


@pytest.fixture
def claims(serve):
    """Custom resources as GpuClaims are: a short name, columns, a status."""
    claims = serve(
        schema=CLAIM_SCHEMA,
        names=CLAIM_NAMES,
        additionalPrinterColumns=CLAIM_COLUMNS,
        subresources={"status": {}},
    )
    claims.apply("mine", claims.widget("mine", {"count": 2}), manager="test")
    return claims


@pytest.fixture
def worker(pods):
    return pods.create(pod("worker", labels={"app": "web"}, annotations={"hami.io/vgpu-node": "node-1"}))


@pytest.mark.usefixtures("worker")
@pytest.mark.contract(
    promise="`get` prints a table, `-o wide` more of it, `--show-labels` the labels", needed_by="kubectl, HAMi clients"
)
def test_get_prints_a_table(kubectl):
    header, line = kubectl("get", "pods", "-o", "wide", "--show-labels").splitlines()
    assert header.split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert {"NODE", "NOMINATED", "LABELS"} <= set(header.split())
    assert line.split()[:3] == ["worker", "0/1", "Pending"]
    assert line.endswith("app=web")


@pytest.mark.usefixtures("worker")
@pytest.mark.contract(promise="`get -o` json, yaml, name, jsonpath and custom-columns")
def test_get_prints_in_every_form(kubectl):
    assert json.loads(kubectl("get", "pod", "worker", "-o", "json"))["kind"] == "Pod"
    assert yaml.safe_load(kubectl("get", "pods", "-o", "yaml"))["items"][0]["metadata"]["name"] == "worker"
    assert kubectl("get", "pods", "-o", "name") == "pod/worker\n"
    assert kubectl("get", "pod", "worker", "-o", "jsonpath={.metadata.annotations.hami\\.io/vgpu-node}") == "node-1"
    columns = "custom-columns=NAME:.metadata.name,NODE:.spec.nodeName"
    assert kubectl("get", "pods", "-o", columns).split() == ["NAME", "NODE", "worker", "<none>"]


@pytest.mark.contract(promise="`get` by label, by field and in all namespaces")
def test_get_selects(kubectl, pods, namespace):
    pods.create(pod("one", labels={"run": namespace}))
    pods.create(pod("two", spec={"schedulerName": "other"}))
    assert kubectl("get", "pods", "-l", f"run={namespace}", "-o", "name") == "pod/one\n"
    assert kubectl("get", "pods", "--field-selector", "spec.schedulerName=other", "-o", "name") == "pod/two\n"
    everywhere = kubectl("get", "pods", "-A", "-l", f"run={namespace}", "--no-headers").split()
    assert everywhere[:2] == [namespace, "one"]


@pytest.mark.contract(promise="`get -w` prints what is there and then every change", needed_by="kubectl, GpuClaim")
def test_get_watches(kubectl, config_maps):
    config_maps.create(config_map("a"))
    with kubectl.running("get", "configmaps", "-w", "-o", "name") as lines:
        assert "configmap/a\n" in iter(lines.readline, "")
        config_maps.create(config_map("b"))
        assert "configmap/b\n" in iter(lines.readline, "")


@pytest.mark.contract(promise="Something absent is `Error from server (NotFound)`")
def test_get_of_something_absent_fails(kubectl):
    assert kubectl.refusal("get", "pod", "absent") == 'Error from server (NotFound): pods "absent" not found\n'


@pytest.mark.contract(
    promise="Custom resources are found by short name and category, with their columns", needed_by="kubectl, GpuClaim"
)
def test_a_custom_resource_is_shown_by_its_short_name(kubectl, claims):
    claims.patch("mine/status", MERGE_PATCH, {"status": {"phase": "Bound"}})
    assert kubectl("get", "gizmo").split() == ["NAME", "COUNT", "PHASE", "mine", "2", "Bound"]
    assert kubectl("get", "gadgets", "-o", "name") == f"widget.{claims.group}/mine\n"
    assert kubectl("get", "gizmo", "mine", "-o", "jsonpath={.status}") == '{"phase":"Bound"}'


@pytest.mark.usefixtures("claims")
@pytest.mark.contract(
    promise="`describe` of a custom resource, a pod with its events, and a node", needed_by="kubectl, GpuClaim"
)
def test_describe_tells_the_story_of_an_object(kubectl, api, namespace, worker, unique, create_for_now):
    involved = {"kind": "Pod", "namespace": namespace, "name": "worker", "uid": worker["metadata"]["uid"]}
    event = {
        "metadata": {"name": "e"},
        "involvedObject": involved,
        "reason": "TooFewCards",
        "message": "need 2, have 1",
    }
    api.collection("events", namespace).create(event | {"type": "Warning", "source": {"component": "tessera"}})
    described = kubectl("describe", "pod", "worker")
    assert "hami.io/vgpu-node: node-1" in described
    assert "TooFewCards" in described
    assert "need 2, have 1" in described
    assert "Count:  2" in kubectl("describe", "gizmo", "mine")
    create_for_now(api.collection("nodes"), {"metadata": {"name": unique, "labels": {"gpu": "on"}}})
    assert "gpu=on" in kubectl("describe", "node", unique)


@pytest.mark.contract(
    promise="`explain` tells the fields of a custom resource and of a pod", needed_by="kubectl, GpuClaim"
)
def test_explain_reads_the_schema(kubectl, claims):
    explained = kubectl("explain", "widgets.spec.count", f"--api-version={claims.group}/v1")
    assert "Number of GPUs needed" in explained
    assert "nodeName" in kubectl("explain", "pod.spec")


@pytest.mark.contract(promise="`api-resources` and `api-versions` list what is served")
def test_what_is_served_is_listed(kubectl, claims):
    listed = kubectl("api-resources", f"--api-group={claims.group}", "--no-headers").split()
    assert listed == ["widgets", "gizmo", f"{claims.group}/v1", "true", "Widget"]
    assert "apps/v1" in kubectl("api-versions").splitlines()


@pytest.mark.contract(promise="`auth can-i` and `auth whoami` answer for whoever asks")
def test_rights_can_be_asked_for(kubectl, engine):
    alice = engine.kubeconfig_for("alice")
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "no" in kubectl.negative("auth", "can-i", "create", "pods", kubeconfig=alice)
    assert "alice" in kubectl("auth", "whoami", kubeconfig=alice)
    assert "no" in kubectl.negative("auth", "can-i", "create", "pods", "--as=system:serviceaccount:default:default")


@pytest.mark.contract(promise="`wait` for a condition, a jsonpath, creation and deletion", needed_by="kubectl, helm")
def test_wait_ends_when_it_is_so(kubectl, pods, claims):
    claims.patch("mine/status", MERGE_PATCH, {"status": {"phase": "Bound"}})
    kubectl("wait", "gizmo/mine", "--for=jsonpath={.status.phase}=Bound", "--timeout=20s")
    kubectl("wait", f"crd/widgets.{claims.group}", "--for=condition=Established", "--timeout=20s")
    with kubectl.running("wait", "pod/later", "--for=create", "--timeout=20s") as lines:
        pods.create(pod("later"))
        assert lines.readline() == "pod/later condition met\n"
    with kubectl.running("wait", "pod/later", "--for=delete", "--timeout=20s") as lines:
        pods.delete("later")
        assert lines.read() in ("", "pod/later condition met\n")
    assert "timed out" in kubectl.refusal("wait", "gizmo/mine", "--for=jsonpath={.status.phase}=Gone", "--timeout=1s")


@pytest.mark.contract(promise="`cluster-info` and `version` find the server", needed_by="kubectl, HAMi clients")
def test_the_server_is_found(kubectl, engine):
    assert engine.url in kubectl("cluster-info")
    assert f"Server Version: v{engine.version}" in kubectl("version")


@pytest.mark.contract(promise="`events --for` shows what happened to one object")
def test_events_of_one_object_are_listed(kubectl, api, namespace, worker):
    involved = {
        "kind": "Pod",
        "namespace": namespace,
        "name": "worker",
        "uid": worker["metadata"]["uid"],
        "apiVersion": "v1",
    }
    event = {"metadata": {"name": "e"}, "involvedObject": involved, "reason": "Bound", "message": "to node-a"}
    api.collection("events", namespace).create(event | {"type": "Normal", "lastTimestamp": "2026-01-02T03:04:05Z"})
    assert "to node-a" in kubectl("events", "--for", "pod/worker")
