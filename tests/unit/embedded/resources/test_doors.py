"""Binding, eviction, scale and deletion: what is done to an object through a door of its own."""

import pytest

from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.resources.binding import bind
from tessera.embedded.resources.deleting import is_held, mark_deleted
from tessera.embedded.resources.evicting import budget_of, charge
from tessera.embedded.resources.scaling import WORKLOAD, paths_of, scale_of, scaled
from tests.unit.embedded.resources.making import NOW, UID, created, pod, served, workload

PODS = served("pods")
LATER = "2026-01-02T03:04:50Z"


def binding(node="node-a", **metadata):
    return {"metadata": {"name": "worker"} | metadata, "target": {"kind": "Node", "name": node}}


def unbound(**spec):
    made = created(PODS, pod(spec=spec))
    made["metadata"]["resourceVersion"] = "7"
    return made


def test_a_binding_places_a_pod_and_leaves_its_annotations():
    made = unbound()
    made["metadata"]["annotations"] = {"kept": "yes", "claim": "mine"}
    allocated = {"gpu.scheduling/allocated": "node-a:0,1", "kept": "no"}
    bound = bind(made, binding(annotations=allocated, uid=UID, resourceVersion="7"), NOW)
    assert bound["spec"]["nodeName"] == "node-a"
    assert bound["metadata"]["annotations"] == {"claim": "mine"} | allocated
    told = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": NOW}
    assert bound["status"]["conditions"] == [told]


def refused_binding(made, **metadata):
    with pytest.raises(ApiRefusal) as refusal:
        bind(made, binding(**metadata), NOW)
    return refusal.value


def test_a_binding_says_why_it_cannot_be():
    told = refused_binding(unbound(nodeName="node-b"))
    assert (told.code, told.reason, told.details["kind"]) == (409, "Conflict", "pods/binding")
    assert told.message.endswith('pod worker is already assigned to node "node-b"')
    gated = unbound(schedulingGates=[{"name": "a"}])
    assert refused_binding(gated).message.endswith("pod worker has non-empty .spec.schedulingGates")
    going = unbound()
    going["metadata"]["deletionTimestamp"] = NOW
    assert refused_binding(going).message.endswith("pod worker is being deleted, cannot be assigned to a host")


@pytest.mark.parametrize("precondition", ["uid", "resourceVersion"])
def test_a_binding_that_means_another_pod_places_nothing(precondition):
    made = unbound()
    told = refused_binding(made, **{precondition: "1"})
    assert (told.code, told.reason) == (409, "Conflict")
    assert "nodeName" not in made["spec"]


def test_a_binding_needs_a_node():
    with pytest.raises(ApiRefusal, match=r"target\.name: Required value"):
        bind(unbound(), {"metadata": {"name": "worker"}, "target": {}}, NOW)


def budget(allowed=0, *, healthy=1, desired=1, labels=None):
    status = {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired}
    selector = {"matchLabels": labels or {"app": "web"}}
    status["observedGeneration"] = 1
    return {"metadata": {"name": "one", "generation": 1}, "spec": {"selector": selector}, "status": status}


def running(*, is_ready=True):
    made = created(PODS, pod())
    made["metadata"]["labels"] = {"app": "web"}
    ready = {"type": "Ready", "status": "True" if is_ready else "False"}
    return made | {"status": {"phase": "Running", "conditions": [ready]}}


def test_a_budget_protects_the_pods_that_it_selects():
    one, other = budget(), budget(labels={"app": "other"})
    assert budget_of(running(), [other, one]) is one
    assert budget_of(running(), [other]) is None


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_pod_that_does_no_work_is_protected_by_nobody(phase):
    assert budget_of(running() | {"status": {"phase": phase}}, [budget()]) is None


def test_a_budget_that_has_nothing_left_refuses_with_its_numbers():
    with pytest.raises(ApiRefusal) as refusal:
        charge(budget(), running(), NOW)
    assert (refusal.value.code, refusal.value.reason) == (429, "TooManyRequests")
    assert refusal.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
    told = "The disruption budget one needs 1 healthy pods and has 1 currently"
    assert refusal.value.details["causes"] == [{"reason": "DisruptionBudget", "message": told}]


def test_a_budget_that_was_not_counted_since_it_changed_refuses():
    stale = budget(1, healthy=2)
    stale["metadata"]["generation"] = 2
    with pytest.raises(ApiRefusal) as refusal:
        charge(stale, running(), NOW)
    assert refusal.value.code == 429


def test_what_a_budget_can_bear_is_taken_once():
    charged = charge(budget(1, healthy=2), running(), NOW)
    assert charged is not None
    assert charged["status"]["disruptionsAllowed"] == 0
    assert charged["status"]["disruptedPods"] == {"worker": NOW}
    with pytest.raises(ApiRefusal):
        charge(charged, running(), NOW)


def test_a_pod_that_is_not_ready_costs_a_budget_nothing_while_enough_others_are():
    assert charge(budget(0, healthy=1, desired=1), running(is_ready=False), NOW) is None


def test_the_scale_of_a_workload_shows_and_sets_its_replicas():
    kind = served("deployments", "apps")
    made = created(kind, workload(replicas=0))
    scale = scale_of(made, WORKLOAD)
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({}, {"replicas": 0, "selector": "app=web"})
    assert scaled(made, {"spec": {"replicas": 3}}, kind.kind, WORKLOAD)["spec"]["replicas"] == 3


def test_a_custom_resource_is_scaled_where_it_says():
    paths = paths_of(
        {
            "specReplicasPath": ".spec.workers",
            "statusReplicasPath": ".status.workers",
            "labelSelectorPath": ".status.selector",
        }
    )
    widget = {"metadata": {"name": "w"}, "spec": {"workers": 2}, "status": {"workers": 1, "selector": "job=w"}}
    scale = scale_of(widget, paths)
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1, "selector": "job=w"})
    kind = served("configmaps").kind
    assert scaled(widget, {"spec": {"replicas": 5}}, kind, paths)["spec"] == {"workers": 5}
    with pytest.raises(ApiRefusal, match="should be a non-negative integer"):
        scaled(widget, {"spec": {"replicas": -1}}, kind, paths)


def test_nothing_is_scaled_below_zero():
    kind = served("deployments", "apps")
    made = created(kind, workload())
    with pytest.raises(ApiRefusal) as refusal:
        scaled(made, {"spec": {"replicas": -1}}, kind.kind, WORKLOAD)
    expected = (
        'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    )
    assert (refusal.value.code, refusal.value.message) == (422, expected)


def test_a_deletion_says_when_the_object_should_be_gone():
    going = mark_deleted(created(PODS, pod(spec={"nodeName": "node-a"})), 45, NOW)
    assert going["metadata"]["deletionTimestamp"] == LATER
    assert going["metadata"]["deletionGracePeriodSeconds"] == 45
    assert going["metadata"]["generation"] == 2
    assert is_held(going)


def test_a_second_deletion_is_only_ever_sooner():
    going = mark_deleted(created(PODS, pod(spec={"nodeName": "node-a"})), 45, NOW)
    assert mark_deleted(going, 60, LATER)["metadata"]["deletionGracePeriodSeconds"] == 45
    sooner = mark_deleted(going, 7, NOW)["metadata"]
    assert (sooner["deletionGracePeriodSeconds"], sooner["generation"]) == (7, 2)
    assert not is_held(mark_deleted(going, 0, NOW))


def test_a_finalizer_holds_what_nobody_runs():
    going = mark_deleted({"metadata": {"name": "a", "finalizers": ["lab.example/hold"]}}, None, NOW)
    assert is_held(going)
    assert going["metadata"]["deletionTimestamp"] == NOW
