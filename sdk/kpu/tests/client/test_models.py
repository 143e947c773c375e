"""The resource as Python sees it."""

from datetime import UTC, datetime

from kpu.client import KpuV1alpha1Compute

SHOWN = {
    "apiVersion": "compute.kpu.dev/v1alpha1",
    "kind": "Compute",
    "metadata": {
        "name": "worker",
        "namespace": "lab",
        "generation": 3,
        "resourceVersion": "77",
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "managedFields": [{"manager": "kpu-python-client"}],
    },
    "spec": {"image": "a", "command": [], "suspend": False, "novelty": {"depth": 2}},
    "status": {
        "observedGeneration": 3,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "StatefulSetReady",
                "message": "",
                "lastTransitionTime": "2026-01-02T03:04:06Z",
                "observedGeneration": 3,
                "severity": "low",
            }
        ],
        "addresses": [{"type": "IPAddress", "value": "10.0.0.1", "port": 50051}],
    },
}


def test_attributes_have_the_names_that_kubernetes_clients_use():
    compute = KpuV1alpha1Compute.from_dict(SHOWN)
    assert compute.metadata.resource_version == "77"
    assert compute.metadata.creation_timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert compute.status
    (ready,) = compute.status.conditions
    assert (ready.type, ready.status, ready.reason, ready.message) == ("Ready", "True", "StatefulSetReady", "")
    assert ready.last_transition_time == datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC)
    assert ready.observed_generation == 3
    assert [(one.value, one.port) for one in compute.status.addresses] == [("10.0.0.1", 50051)]


def test_what_was_read_is_written_again_with_what_is_not_known():
    assert KpuV1alpha1Compute.from_dict(SHOWN).to_dict() == SHOWN


def test_a_compute_without_status_has_none_and_writes_none():
    young = {key: value for key, value in SHOWN.items() if key != "status"}
    assert KpuV1alpha1Compute.from_dict(young).status is None
    assert KpuV1alpha1Compute.from_dict(young).to_dict() == young


def test_a_status_without_conditions_can_be_iterated():
    compute = KpuV1alpha1Compute.from_dict({**SHOWN, "status": {}})
    assert compute.status
    assert [*compute.status.conditions] == []
    assert compute.to_dict()["status"] == {}
