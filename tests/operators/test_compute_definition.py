"""Computes as people use them: by kubectl, on an API server of each engine."""

import json
from typing import Any

import pytest

from tests.contract.command_line import CommandLine
from tests.operators.compute_life import a_compute

KEY = {"name": "config", "key": "level"}
EVERYTHING = {
    "labels": {"team": "ml"},
    "annotations": {"note": "mine"},
    "suspend": True,
    "image": "localhost:5001/kpu-torch-server:latest",
    "command": ["python"],
    "args": ["-m", "kpu.torch.server"],
    "env": [
        {"name": "LOG_LEVEL", "value": "DEBUG"},
        {"name": "FROM_MAP", "valueFrom": {"configMapKeyRef": KEY | {"optional": True}}},
        {"name": "FROM_SECRET", "valueFrom": {"secretKeyRef": KEY}},
        {"name": "FROM_POD", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "FROM_LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
    ],
    "resources": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 1},
    "token": "disabled",
    "tls": {"secretName": "cert"},
    "sharedMemory": {"hostPath": "/run/kpu"},
    "route": {"parentRefs": [{"name": "gate", "namespace": "edge", "port": 443}], "hostnames": ["kpu.example"]},
}


def apply(kubectl: CommandLine, name: str, spec: Any, *more: str) -> str:
    return kubectl("apply", "--server-side", "-f", "-", *more, input=json.dumps(a_compute(name, spec)))


def spec_of(kubectl: CommandLine, name: str) -> Any:
    return json.loads(kubectl("get", "compute", name, "-o", "json"))["spec"]


def test_everything_that_a_compute_can_say_is_kept(kubectl: CommandLine):
    apply(kubectl, "demo", EVERYTHING)
    assert spec_of(kubectl, "demo") == EVERYTHING


def test_everything_can_be_left_out(kubectl: CommandLine):
    apply(kubectl, "bare", {})
    assert spec_of(kubectl, "bare") == {"suspend": False}
    document = a_compute("barest", {})
    del document["spec"]
    kubectl("apply", "--server-side", "-f", "-", input=json.dumps(document))
    assert spec_of(kubectl, "barest") == {"suspend": False}


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("1st", "name is no RFC 1035 label, expected lower-case letters, digits and hyphens, a letter first"),
        ("a.b", "name is no RFC 1035 label"),
        ("a" * 64, "name is longer than 63 characters, expected at most 63"),
    ],
)
def test_a_name_that_a_service_could_not_have_is_refused(kubectl: CommandLine, name: str, complaint: str):
    assert complaint in kubectl.refusal("apply", "-f", "-", input=json.dumps(a_compute(name, {})))


def test_the_longest_name_is_taken(kubectl: CommandLine):
    apply(kubectl, "a" * 63, {})


BOTH = {"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"env": [BOTH]}, "value and valueFrom are both given, expected one of them"),
        ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, "duplicate entries for key"),
        ({"env": [{"value": "1"}]}, "name"),
        ({"env": [{"name": "A", "valueFrom": {}}]}, "should have at least 1 properties"),
        ({"resources": {"cpu": "much"}}, "spec.resources.cpu"),
        ({"token": "maybe"}, 'supported values: "enabled", "disabled"'),
        ({"tls": {}}, "spec.tls.secretName: Required value"),
        ({"sharedMemory": {"hostPath": "here"}}, "spec.sharedMemory.hostPath"),
        ({"sharedMemory": {"hostPath": f"/{'a' * 65}"}}, "spec.sharedMemory.hostPath"),
        ({"sharedMemory": {"hostPath": "/a", "claimName": "b"}}, "at most 1"),
        ({"route": {"parentRefs": []}}, "spec.route.parentRefs"),
        ({"suspend": "yes"}, "spec.suspend"),
        ({"imagee": "a"}, "imagee"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(kubectl: CommandLine, spec: Any, complaint: str):
    document = json.dumps(a_compute("demo", spec))
    assert complaint in kubectl.refusal("apply", "--server-side", "-f", "-", input=document)


def test_two_managers_have_a_variable_each(kubectl: CommandLine):
    apply(kubectl, "demo", {"env": [{"name": "A", "value": "1"}]}, "--field-manager=one")
    apply(kubectl, "demo", {"env": [{"name": "B", "value": "2"}]}, "--field-manager=two")
    assert {one["name"] for one in spec_of(kubectl, "demo")["env"]} == {"A", "B"}
    apply(kubectl, "demo", {"env": [{"name": "C", "value": "3"}]}, "--field-manager=two")
    assert {one["name"] for one in spec_of(kubectl, "demo")["env"]} == {"A", "C"}


def tell(kubectl: CommandLine, **states: str) -> None:
    at = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": kind, "status": status, "reason": "Because", "message": f"why {kind}", "lastTransitionTime": at}
        for kind, status in states.items()
    ]
    patch = json.dumps({"status": {"conditions": conditions}})
    kubectl("patch", "compute", "demo", "--subresource=status", "--type=merge", f"--patch={patch}")


def test_the_state_is_the_condition_that_holds(kubectl: CommandLine):
    apply(kubectl, "demo", {})
    for state in ("Ready", "Suspended", "Stalled"):
        tell(kubectl, **{kind: str(kind == state) for kind in ("Ready", "Suspended", "Stalled")})
        heading, row = kubectl("get", "computes").splitlines()
        assert heading.split() == ["NAME", "STATE", "AGE"]
        assert row.split()[:2] == ["demo", state]
    wide = kubectl("get", "compute", "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", "STATE", "REASON", "MESSAGE", "AGE"]
    assert wide[1].split()[1:5] == ["Stalled", "Because", "why", "Ready"]
    assert "Message:               why Stalled" in kubectl("describe", "compute", "demo")


def test_kubectl_explains_a_compute(kubectl: CommandLine):
    explained = kubectl("explain", "compute.spec.env.valueFrom")
    assert "secretKeyRef" in explained
    assert "merged by name" in " ".join(kubectl("explain", "compute.spec.env").split())


def test_the_status_of_a_compute_is_not_the_users_to_write(kubectl: CommandLine):
    document = a_compute("demo", {}) | {"status": {"observedGeneration": 9}}
    kubectl("apply", "-f", "-", input=json.dumps(document))
    assert kubectl("get", "compute", "demo", "-o", "jsonpath={.status}") == ""
