"""Status and scale: doors into an object that let only one thing through."""

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.custom_resources import ANYTHING
from tests.contract.objects import deployment, pod, pod_template
from tests.contract.refusals import refused

pytestmark = pytest.mark.contract(area="Subresources", needed_by="operators")

SCALE = {
    "specReplicasPath": ".spec.workers",
    "statusReplicasPath": ".status.workers",
    "labelSelectorPath": ".status.selector",
}


@pytest.fixture
def widgets(serve):
    subresources = {"status": {}, "scale": SCALE}
    return serve(schema={"spec": ANYTHING, "status": ANYTHING}, subresources=subresources)


@pytest.mark.contract(
    promise="A write to status changes status alone, and not the generation", needed_by="operators, GpuClaim, Compute"
)
def test_a_write_to_status_leaves_the_spec_alone(widgets):
    created = widgets.create(widgets.widget("w", {"size": 1}))
    changed = created | {"spec": {"size": 2}, "status": {"phase": "Bound"}}
    written = widgets.replace("w/status", changed)
    assert (written["spec"], written["status"]) == ({"size": 1}, {"phase": "Bound"})
    assert written["metadata"]["generation"] == 1
    assert written["metadata"]["resourceVersion"] != created["metadata"]["resourceVersion"]


@pytest.mark.contract(
    promise="A write to the object leaves status alone, also when it creates", needed_by="operators, GpuClaim"
)
def test_a_write_to_the_object_leaves_status_alone(widgets):
    created = widgets.create(widgets.widget("w", {"size": 1}) | {"status": {"phase": "Bound"}})
    assert "status" not in created
    patched = widgets.patch("w", MERGE_PATCH, {"spec": {"size": 2}, "status": {"phase": "Bound"}})
    assert patched["spec"] == {"size": 2}
    assert "status" not in patched
    assert patched["metadata"]["generation"] == 2


@pytest.mark.contract(promise="A resource without the status subresource has no such path", needed_by="operators")
def test_status_must_be_declared(serve):
    widgets = serve()
    widgets.create(widgets.widget("w", {}))
    with refused(404):
        widgets.get("w/status")


@pytest.mark.contract(promise="The status of a pod is written through pods/status, its spec is not", needed_by="node")
def test_the_status_of_a_pod_has_its_own_door(pods):
    pods.create(pod("worker"))
    patch = {"status": {"phase": "Running"}, "spec": {"activeDeadlineSeconds": 5}}
    pods.patch("worker/status", MERGE_PATCH, patch)
    read = pods.get("worker")
    assert read["status"]["phase"] == "Running"
    assert "activeDeadlineSeconds" not in read["spec"]


@pytest.mark.contract(
    promise="scale of a Deployment and a StatefulSet shows and sets replicas", needed_by="operators, kubectl, Compute"
)
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_workload_is_scaled_through_its_subresource(api, namespace, kind):
    workloads = api.collection(f"apps/v1/{kind.lower()}s", namespace)
    workloads.create(deployment("web", replicas=0) | {"kind": kind})
    scale = workloads.get("web/scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {}
    assert scale["status"] == {"replicas": 0, "selector": "app=web"}
    workloads.patch("web/scale", MERGE_PATCH, {"spec": {"replicas": 3}})
    assert workloads.get("web")["spec"]["replicas"] == 3


@pytest.mark.contract(promise="A custom resource says where its scale lies", needed_by="operators, kubectl")
def test_a_custom_resource_is_scaled_where_it_says(widgets):
    widgets.create(widgets.widget("w", {"workers": 2}))
    widgets.patch("w/status", MERGE_PATCH, {"status": {"workers": 1, "selector": "job=w"}})
    scale = widgets.get("w/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1, "selector": "job=w"})
    widgets.patch("w/scale", MERGE_PATCH, {"spec": {"replicas": 5}})
    assert widgets.get("w")["spec"] == {"workers": 5}


@pytest.mark.contract(promise="A scale below zero is 422", needed_by="kubectl")
def test_nothing_is_scaled_below_zero(deployments):
    deployments.create(deployment("web", replicas=0))
    with refused(422, "Invalid"):
        deployments.patch("web/scale", MERGE_PATCH, {"spec": {"replicas": -1}})


@pytest.mark.contract(promise="A selector of a Deployment must match its own template", needed_by="operators")
def test_a_deployment_selects_its_own_pods(deployments):
    wrong = deployment("web")
    wrong["spec"]["template"] = pod_template("another")
    with refused(422, "Invalid") as refusal:
        deployments.create(wrong)
    assert "`selector` does not match template `labels`" in refusal.value.message
