"""Giving a pod its node, and taking it off again."""

import pytest

from tests.contract.api import MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.objects import pod
from tests.contract.refusals import refused
from tests.contract.waiting import eventually

pytestmark = pytest.mark.contract(area="Binding and eviction", needed_by="scheduler")


def binding(pod_name, node, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod_name} | metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


@pytest.mark.contract(promise="A Binding sets spec.nodeName and the condition PodScheduled")
def test_a_binding_places_a_pod(pods):
    pods.create(pod("worker"))
    answer = pods.post("worker/binding", binding("worker", "node-a"))
    assert answer["status"] == "Success"
    bound = pods.get("worker")
    assert bound["spec"]["nodeName"] == "node-a"
    scheduled = next(entry for entry in bound["status"]["conditions"] if entry["type"] == "PodScheduled")
    assert scheduled["status"] == "True"


@pytest.mark.contract(
    promise="Annotations of the Binding land on the pod in the same write",
    needed_by="scheduler, HAMi clients, GpuClaim",
)
def test_annotations_of_a_binding_land_on_the_pod(pods):
    created = pods.create(pod("worker", annotations={"kept": "yes", "gpu.scheduling/claim": "mine"}))
    allocated = {"gpu.scheduling/allocated": "node-a:0,1", "kept": "no"}
    with pods.watch(resourceVersion=created["metadata"]["resourceVersion"]) as watch:
        pods.post("worker/binding", binding("worker", "node-a", annotations=allocated))
        event = watch.next()
    assert event.object["spec"]["nodeName"] == "node-a"
    assert event.object["metadata"]["annotations"] == {"gpu.scheduling/claim": "mine"} | allocated


@pytest.mark.contract(promise="A Binding for another uid or an old resourceVersion is 409 and places nothing")
@pytest.mark.parametrize("precondition", ["uid", "resourceVersion"])
def test_a_binding_for_another_pod_is_refused(pods, precondition):
    earlier = pods.create(pod("worker"))["metadata"][precondition]
    pods.delete("worker")
    pods.create(pod("worker"))
    with refused(409, "Conflict"):
        pods.post("worker/binding", binding("worker", "node-a", **{precondition: earlier}))
    assert "nodeName" not in pods.get("worker")["spec"]


@pytest.mark.contract(promise="A Binding with the current uid and resourceVersion is let through")
def test_a_binding_for_this_pod_goes_through(pods):
    metadata = pods.create(pod("worker"))["metadata"]
    current = {key: metadata[key] for key in ("uid", "resourceVersion")}
    pods.post("worker/binding", binding("worker", "node-a", **current))
    assert pods.get("worker")["spec"]["nodeName"] == "node-a"


@pytest.mark.contract(promise="A second Binding is 409 and names the node that the pod has")
def test_a_bound_pod_stays_where_it_is(pods):
    pods.create(pod("worker"))
    pods.post("worker/binding", binding("worker", "node-a"))
    with refused(409, "Conflict") as refusal:
        pods.post("worker/binding", binding("worker", "node-b"))
    assert 'pod worker is already assigned to node "node-a"' in refusal.value.message


@pytest.mark.contract(promise="A pod that is being deleted is not bound: 409")
def test_a_pod_on_its_way_out_is_not_bound(pods):
    pods.create(pod("worker", finalizers=["contract.example/hold"]))
    pods.delete("worker")
    with refused(409, "Conflict") as refusal:
        pods.post("worker/binding", binding("worker", "node-a"))
    assert "pod worker is being deleted, cannot be assigned to a host" in refusal.value.message
    pods.patch("worker", MERGE_PATCH, {"metadata": {"finalizers": None}})


@pytest.mark.contract(
    promise="A pod with scheduling gates is not bound until they are taken off", needed_by="scheduler, operators"
)
def test_a_gated_pod_is_not_bound(pods):
    pods.create(pod("worker", spec={"schedulingGates": [{"name": "contract.example/gate"}]}))
    with refused(409, "Conflict") as refusal:
        pods.post("worker/binding", binding("worker", "node-a"))
    assert "has non-empty .spec.schedulingGates" in refusal.value.message
    pods.patch("worker", MERGE_PATCH, {"spec": {"schedulingGates": []}})
    pods.post("worker/binding", binding("worker", "node-a"))


@pytest.mark.contract(promise="Gates can be taken off a pod and never added", needed_by="operators")
def test_no_gate_is_added_later(pods):
    pods.create(pod("worker"))
    with refused(422, "Invalid"):
        pods.patch("worker", MERGE_PATCH, {"spec": {"schedulingGates": [{"name": "contract.example/late"}]}})


def eviction(pod_name):
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod_name}}


@pytest.fixture
def budget(api, namespace):
    """One pod of the app must stay; returns how to wait until the budget has counted."""
    budgets = api.collection("policy/v1/poddisruptionbudgets", namespace)
    budgets.create(
        {"metadata": {"name": "one"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    )

    def wait_until_healthy(count):
        eventually(lambda: budgets.get("one").get("status", {}).get("currentHealthy") == count)

    return wait_until_healthy


def create_ready_pod(pods, name):
    pods.create(pod(name, spec={"nodeName": "no-such-node"}, labels={"app": "web"}))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    pods.patch(f"{name}/status", STRATEGIC_PATCH, {"status": ready})


@pytest.mark.contract(promise="An Eviction deletes a pod that no budget protects", needed_by="scheduler, kubectl")
def test_an_eviction_deletes_a_pod(pods):
    pods.create(pod("worker"))
    assert pods.post("worker/eviction", eviction("worker"))["status"] == "Success"
    assert not pods.exists("worker")


@pytest.mark.contract(
    promise="An Eviction against a PodDisruptionBudget is 429 with the budget as its cause", needed_by="scheduler"
)
def test_a_budget_refuses_an_eviction(pods, budget):
    create_ready_pod(pods, "worker")
    budget(1)
    with refused(429, "TooManyRequests") as refusal:
        pods.post("worker/eviction", eviction("worker"))
    assert refusal.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
    cause = refusal.value.causes[0]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget one needs 1 healthy pods and has 1 currently"


@pytest.mark.contract(promise="An Eviction that a budget can bear is let through once", needed_by="scheduler")
def test_a_budget_lets_through_what_it_can_bear(pods, budget):
    for name in ("worker-0", "worker-1"):
        create_ready_pod(pods, name)
    budget(2)
    pods.post("worker-0/eviction", eviction("worker-0"))
    assert "deletionTimestamp" in pods.get("worker-0")["metadata"]
    with refused(429, "TooManyRequests"):
        pods.post("worker-1/eviction", eviction("worker-1"))
