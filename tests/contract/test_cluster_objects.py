"""Nodes, priorities, leases and events: what schedulers and agents write for one another."""

import pytest

from tests.contract.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.objects import pod
from tests.contract.refusals import refused

pytestmark = pytest.mark.contract(area="Nodes, leases and events", needed_by="scheduler, node")


@pytest.fixture
def nodes(api):
    return api.collection("nodes")


@pytest.fixture
def node(nodes, unique, create_for_now):
    """A node that no kubelet keeps."""
    return create_for_now(nodes, {"metadata": {"name": unique, "labels": {"gpu": "on", "run": unique}}})


@pytest.mark.contract(promise="A new node is tainted not-ready until its kubelet says otherwise")
def test_a_new_node_is_not_ready(node):
    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


@pytest.mark.usefixtures("node")
@pytest.mark.contract(
    promise="Capacity is put on a node by patching its status; allocatable follows it only when it is absent",
    needed_by="node, HAMi clients",
)
def test_an_extended_resource_is_advertised_in_status(nodes, unique):
    first = nodes.patch(f"{unique}/status", MERGE_PATCH, {"status": {"capacity": {"nvidia.com/gpu": "8"}}})
    assert first["status"]["allocatable"] == {"nvidia.com/gpu": "8"}
    more = [{"op": "add", "path": "/status/capacity/nvidia.com~1gpumem", "value": "65536"}]
    second = nodes.patch(f"{unique}/status", JSON_PATCH, more)
    assert second["status"]["capacity"] == {"nvidia.com/gpu": "8", "nvidia.com/gpumem": "65536"}
    assert second["status"]["allocatable"] == {"nvidia.com/gpu": "8"}


@pytest.mark.usefixtures("node")
@pytest.mark.contract(
    promise="Nodes are selected by labels, and annotations on them are kept verbatim", needed_by="HAMi clients"
)
def test_a_node_carries_the_register_of_its_cards(nodes, unique):
    register = "GPU-03f69c50,10,32768,100,NVIDIA-H200,0,true:GPU-1afede84,10,32768,100,NVIDIA-H200,0,true:"
    annotations = {
        "hami.io/node-nvidia-register": register,
        "hami.io/node-handshake-nvidia": "Reported 2024-01-23 04:30:04",
    }
    nodes.patch(unique, STRATEGIC_PATCH, {"metadata": {"annotations": annotations}})
    found = nodes.listing(labelSelector=f"gpu=on,run={unique}")["items"]
    assert len(found) == 1
    assert annotations.items() <= found[0]["metadata"]["annotations"].items()


@pytest.mark.usefixtures("node")
@pytest.mark.contract(promise="Conditions of a node are merged by type")
def test_a_condition_of_a_node_is_merged_by_type(nodes, unique):
    for kind in ("GpuHealthy", "GpuRegistered"):
        condition = {"type": kind, "status": "True", "reason": "Seen", "message": ""}
        nodes.patch(f"{unique}/status", STRATEGIC_PATCH, {"status": {"conditions": [condition]}})
    kinds = [condition["type"] for condition in nodes.get(unique)["status"]["conditions"]]
    assert {"GpuHealthy", "GpuRegistered"} <= set(kinds)


@pytest.mark.contract(
    promise="A PriorityClass is resolved into spec.priority when a pod is created", needed_by="scheduler, operators"
)
def test_a_priority_class_is_resolved(api, pods, unique, create_for_now):
    classes = api.collection("scheduling.k8s.io/v1/priorityclasses")
    create_for_now(classes, {"metadata": {"name": unique}, "value": 1000, "preemptionPolicy": "Never"})
    created = pods.create(pod("worker", spec={"priorityClassName": unique}))
    assert (created["spec"]["priority"], created["spec"]["preemptionPolicy"]) == (1000, "Never")
    assert pods.create(pod("plain"))["spec"]["priority"] == 0


@pytest.mark.contract(promise="A PriorityClass that is not there is 403", needed_by="operators")
def test_an_unknown_priority_class_is_refused(pods):
    with refused(403, "Forbidden") as refusal:
        pods.create(pod("worker", spec={"priorityClassName": "absent"}))
    assert "no PriorityClass with name absent was found" in refusal.value.message


@pytest.fixture
def leases(api, namespace):
    return api.collection("coordination.k8s.io/v1/leases", namespace)


@pytest.mark.contract(
    promise="Times of leases have six digits for the second's parts, no less", needed_by="scheduler, node, GpuClaim"
)
def test_a_lease_keeps_microseconds(leases):
    spec = {"holderIdentity": "abc", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.678901Z"}
    assert leases.create({"metadata": {"name": "gpu-node-a-0"}, "spec": spec})["spec"] == spec
    with refused(400, "BadRequest"):
        leases.create({"metadata": {"name": "other"}, "spec": {"renewTime": "2026-01-02T03:04:05.678Z"}})


@pytest.mark.contract(
    promise="A lease has one holder: of two who take it at one version, one gets 409", needed_by="scheduler, GpuClaim"
)
def test_a_lease_is_taken_once(leases):
    free = leases.create({"metadata": {"name": "leader"}, "spec": {"leaseDurationSeconds": 15}})
    leases.replace("leader", free | {"spec": {"holderIdentity": "one"}})
    with refused(409, "Conflict"):
        leases.replace("leader", free | {"spec": {"holderIdentity": "two"}})
    assert leases.get("leader")["spec"]["holderIdentity"] == "one"


@pytest.fixture
def events(api, namespace):
    events = api.collection("events", namespace)
    for name, about, reason in (("a", "worker", "TooFewCards"), ("b", "worker", "Bound"), ("c", "other", "Bound")):
        involved = {"kind": "Pod", "namespace": namespace, "name": about, "uid": f"uid-of-{about}", "apiVersion": "v1"}
        body = {"metadata": {"name": name}, "involvedObject": involved, "reason": reason, "type": "Normal"}
        events.create(body | {"message": "…", "source": {"component": "tessera"}, "count": 1})
    return events


@pytest.mark.contract(
    promise="Events are selected by the object they are about, its uid, reason and type", needed_by="views, kubectl"
)
@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("involvedObject.name=worker", ["a", "b"]),
        ("involvedObject.uid=uid-of-other", ["c"]),
        ("involvedObject.kind=Pod,reason=Bound", ["b", "c"]),
        ("involvedObject.kind=Node", []),
        ("type!=Normal", []),
    ],
)
def test_events_are_found_by_what_they_are_about(events, selector, found):
    assert events.names(fieldSelector=selector) == found


@pytest.mark.contract(promise="An event counts up by a patch", needed_by="scheduler, operators")
def test_an_event_is_counted_up(events):
    patched = events.patch("a", MERGE_PATCH, {"count": 2, "lastTimestamp": "2026-01-02T03:04:05Z"})
    assert (patched["count"], patched["lastTimestamp"]) == (2, "2026-01-02T03:04:05Z")


@pytest.mark.usefixtures("events")
@pytest.mark.contract(promise="What is written through core/v1 is read through events.k8s.io/v1", needed_by="kubectl")
def test_both_event_apis_show_the_same(api, namespace):
    seen = api.collection("events.k8s.io/v1/events", namespace).get("a")
    assert seen["regarding"]["name"] == "worker"
    assert (seen["deprecatedCount"], seen["note"]) == (1, "…")
