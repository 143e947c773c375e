"""Pods: what they are given, what of them may change, and how they go."""

import pytest

from tessera.embedded.refusals import ApiRefusal
from tests.unit.embedded.resources.making import (
    begun,
    by_field,
    created,
    pod,
    refusals,
    served,
    updated,
    with_status,
)

PODS = served("pods")
GATE = {"schedulingGates": [{"name": "lab.example/quota"}, {"name": "lab.example/other"}]}


def container_of(made):
    return made["spec"]["containers"][0]


def test_what_a_pod_leaves_out_is_filled_in():
    made = created(PODS, pod())
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["metadata"]["generation"] == 1
    expected = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
    }
    assert expected.items() <= made["spec"].items()
    assert container_of(made) == {
        "name": "main",
        "image": "registry.invalid/none",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always",
    }


def test_a_pod_stays_for_five_minutes_on_a_node_that_falls_silent():
    added = created(PODS, pod())["spec"]["tolerations"]
    assert [(one["key"], one["tolerationSeconds"]) for one in added] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]


def test_a_pod_that_tolerates_everything_is_given_no_other_toleration():
    everything = [{"operator": "Exists"}]
    assert created(PODS, pod(spec={"tolerations": everything}))["spec"]["tolerations"] == everything


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("registry.example:5000/busybox", "Always"),
        ("registry.example:5000/busybox:1", "IfNotPresent"),
        ("busybox@sha256:" + "0" * 64, "IfNotPresent"),
    ],
)
def test_an_image_whose_tag_may_move_is_always_pulled(image, policy):
    assert container_of(created(PODS, pod(image=image)))["imagePullPolicy"] == policy


def test_limits_become_requests_in_canonical_form():
    asked = {"cpu": "1500m", "memory": "1024Mi", "nvidia.com/gpumem": 8000}
    kept = {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpumem": "8k"}
    resources = {"limits": asked, "requests": {"cpu": 0.1}}
    made = container_of(created(PODS, pod(resources=resources)))
    assert made["resources"] == {"limits": kept, "requests": kept | {"cpu": "100m"}}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
        ({"requests": {"cpu": "0"}}, "BestEffort"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
    ],
)
def test_the_class_of_service_follows_from_what_is_asked_for(resources, quality):
    assert created(PODS, pod(resources=resources))["status"]["qosClass"] == quality


def test_ports_probes_and_volumes_are_completed():
    volumes = [
        {"name": "c", "configMap": {"name": "x"}},
        {"name": "e"},
        {"name": "s", "emptyDir": {"sizeLimit": "1024Ki"}},
        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
    ]
    made = created(
        PODS,
        pod(spec={"volumes": volumes}, ports=[{"containerPort": 80}], readinessProbe={"httpGet": {"port": 80}}),
    )
    assert container_of(made)["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert container_of(made)["readinessProbe"] == {
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    config, empty, small, projected = made["spec"]["volumes"]
    assert config["configMap"]["defaultMode"] == 0o644
    assert empty["emptyDir"] == {}
    assert small["emptyDir"]["sizeLimit"] == "1Mi"
    assert projected["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600


def test_a_quantity_that_is_none_is_a_bad_request():
    with pytest.raises(ApiRefusal, match="quantities must match the regular expression") as refusal:
        begun(PODS, pod(resources={"limits": {"cpu": "lots"}}))
    assert refusal.value.code == 400


def test_a_gated_pod_says_that_it_waits():
    condition = created(PODS, pod(spec=GATE))["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def changed_spec(old, **fields):
    return refusals(PODS, old, spec=old["spec"] | fields)


def test_most_of_a_pod_is_fixed_once_it_is_there():
    complaint = changed_spec(created(PODS, pod()), schedulerName="another")["spec"]
    assert complaint.startswith("Forbidden: pod updates may not change fields other than `spec.containers[*].image`")


@pytest.mark.parametrize("field", ["nodeName", "nodeSelector", "terminationGracePeriodSeconds"])
def test_where_and_how_a_pod_runs_is_not_changed_by_an_update(field):
    value = {"nodeName": "node-a", "nodeSelector": {"gpu": "on"}, "terminationGracePeriodSeconds": 1}[field]
    assert "spec" in changed_spec(created(PODS, pod()), **{field: value})


def test_an_image_a_deadline_and_another_toleration_may_change():
    old = created(PODS, pod())
    image = [container_of(old) | {"image": "other:1"}]
    tolerations = [*old["spec"]["tolerations"], {"key": "gpu", "operator": "Exists"}]
    new = updated(PODS, old, spec=old["spec"] | {"containers": image, "tolerations": tolerations})
    assert PODS.strategy.validate_update(new, old) == []
    assert new["metadata"]["generation"] == 2
    assert changed_spec(old, activeDeadlineSeconds=5) == {}


def test_a_deadline_is_only_brought_forward():
    old = created(PODS, pod(spec={"activeDeadlineSeconds": 60}))
    assert changed_spec(old, activeDeadlineSeconds=30) == {}
    assert "spec.activeDeadlineSeconds" in changed_spec(old, activeDeadlineSeconds=90)


def test_a_toleration_is_not_taken_away():
    old = created(PODS, pod(spec={"tolerations": [{"key": "gpu", "operator": "Exists"}]}))
    complaint = changed_spec(old, tolerations=[])["spec.tolerations"]
    assert complaint == "Forbidden: existing toleration can not be modified except its tolerationSeconds"


def test_containers_are_neither_added_nor_removed():
    old = created(PODS, pod())
    complaint = changed_spec(old, containers=[container_of(old), container_of(old) | {"name": "more"}])
    assert complaint["spec.containers"] == "Forbidden: pod updates may not add or remove containers"


def test_gates_are_taken_off_and_never_added():
    old = created(PODS, pod(spec=GATE))
    assert changed_spec(old, schedulingGates=GATE["schedulingGates"][1:]) == {}
    assert "schedulingGates" not in updated(PODS, old, spec=old["spec"] | {"schedulingGates": []})["spec"]
    late = changed_spec(created(PODS, pod()), schedulingGates=[{"name": "late"}])
    told = "Forbidden: only deletion is allowed, but found new scheduling gate 'late'"
    assert late["spec.schedulingGates[0].name"] == told


def test_a_gated_pod_may_still_be_told_where_to_run():
    assert changed_spec(created(PODS, pod(spec=GATE)), nodeSelector={"gpu": "on"}) == {}


def test_a_write_to_the_pod_leaves_its_status_alone():
    old = created(PODS, pod())
    assert updated(PODS, old, status={"phase": "Running"})["status"]["phase"] == "Pending"


def test_a_write_to_the_status_leaves_the_spec_alone():
    old = created(PODS, pod())
    new = with_status(PODS, old, status={"phase": "Running"}, spec=old["spec"] | {"activeDeadlineSeconds": 5})
    assert new["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert new["spec"] == old["spec"]
    assert new["metadata"]["generation"] == 1


def test_the_class_of_service_is_not_written_by_others():
    old = created(PODS, pod())
    new = with_status(PODS, old, status=old["status"] | {"qosClass": "Guaranteed"})
    told = by_field(PODS.strategy.validate_status(new, old))
    assert told == {"status.qosClass": 'Invalid value: "Guaranteed": field is immutable'}


@pytest.mark.parametrize(
    ("spec", "status", "options", "grace_s"),
    [
        ({}, {}, {}, 0),
        ({"nodeName": "node-a"}, {}, {}, 30),
        ({"nodeName": "node-a", "terminationGracePeriodSeconds": 45}, {}, {"gracePeriodSeconds": 7}, 7),
        ({"nodeName": "node-a"}, {}, {"gracePeriodSeconds": 0}, 0),
        ({"nodeName": "node-a"}, {"phase": "Succeeded"}, {}, 0),
        ({"nodeName": "node-a"}, {}, {"gracePeriodSeconds": -1}, 1),
    ],
    ids=["never bound", "by its spec", "sooner", "at once", "ended", "negative"],
)
def test_only_a_pod_that_runs_is_waited_for(spec, status, options, grace_s):
    made = created(PODS, pod(spec=spec))
    assert PODS.strategy.grace_s(made | {"status": status}, options) == grace_s
