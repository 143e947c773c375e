"""What a pod must be like, in Kubernetes' words and with its paths."""

import pytest

from tests.unit.embedded.resources.making import complaints, pod, served

PODS = served("pods")
MAIN = "spec.containers[0]"


def test_every_wrong_field_is_told():
    found = complaints(PODS, pod(spec={"restartPolicy": "Sometimes"}, image="", name="Main"))
    assert found[f"{MAIN}.image"] == "Required value"
    assert found[f"{MAIN}.name"].startswith('Invalid value: "Main": a lowercase RFC 1123 label must consist of')
    supported = 'Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'
    assert found["spec.restartPolicy"] == supported


@pytest.mark.parametrize(
    ("resources", "field", "message"),
    [
        (
            {"limits": {"nvidia.com/gpu": "500m"}},
            "limits[nvidia.com/gpu]",
            'Invalid value: "500m": must be an integer',
        ),
        (
            {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "1"}},
            "requests",
            'Invalid value: "1": must be equal to nvidia.com/gpu limit of 2',
        ),
        (
            {"requests": {"nvidia.com/gpu": "1"}},
            "limits",
            "Required value: Limit must be set for non overcommitable resources",
        ),
        (
            {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
            "requests",
            'Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        ({"limits": {"cpu": "-1"}}, "limits[cpu]", 'Invalid value: "-1": must be greater than or equal to 0'),
        ({"limits": {"gpu": "1"}}, "limits[gpu]", 'Invalid value: "gpu": must be a standard resource for containers'),
    ],
)
def test_resources_are_whole_named_and_not_more_than_their_limit(resources, field, message):
    assert complaints(PODS, pod(resources=resources))[f"{MAIN}.resources.{field}"] == message


@pytest.mark.parametrize(
    ("container", "field", "message"),
    [
        ({"ports": [{"containerPort": 0}]}, "ports[0].containerPort", "Required value"),
        (
            {"ports": [{"containerPort": 70000}]},
            "ports[0].containerPort",
            "Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            {"ports": [{"containerPort": 1, "protocol": "X"}]},
            "ports[0].protocol",
            'Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
        ),
        ({"env": [{"name": ""}]}, "env[0].name", "Required value"),
        (
            {"env": [{"name": "a=b"}]},
            "env[0].name",
            'Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters '
            "other than '='",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.foo"}}}]},
            "env[0].valueFrom.fieldRef.fieldPath",
            'Invalid value: "metadata.foo": error converting fieldPath: field label not supported: metadata.foo',
        ),
        ({"volumeMounts": [{"name": "x", "mountPath": "/x"}]}, "volumeMounts[0].name", 'Not found: "x"'),
        ({"readinessProbe": {}}, "readinessProbe", "Required value: must specify a handler type"),
        (
            {"livenessProbe": {"tcpSocket": {"port": 1}, "successThreshold": 2}},
            "livenessProbe.successThreshold",
            "Invalid value: 2: must be 1",
        ),
        ({"image": " a"}, "image", 'Invalid value: " a": must not have leading or trailing whitespace'),
    ],
)
def test_a_container_is_told_what_is_wrong_with_it(container, field, message):
    assert complaints(PODS, pod(**container)) == {f"{MAIN}.{field}": message}


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"containers": []}, "spec.containers", "Required value"),
        (
            {"initContainers": [{"name": "main", "image": "x"}]},
            "spec.initContainers[0].name",
            'Duplicate value: "main"',
        ),
        (
            {"volumes": [{"name": "b"}, {"name": "b", "emptyDir": {}}]},
            "spec.volumes[1].name",
            'Duplicate value: "b"',
        ),
        (
            {"volumes": [{"name": "c", "emptyDir": {}, "hostPath": {"path": "/"}}]},
            "spec.volumes[0].hostPath",
            "Forbidden: may not specify more than 1 volume type",
        ),
        (
            {"tolerations": [{"operator": "Exists", "effect": "NoExecute"}, {"key": "a", "effect": "Foo"}]},
            "spec.tolerations[1].effect",
            'Unsupported value: "Foo": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        ),
        (
            {"schedulingGates": [{"name": "x"}], "nodeName": "node-a"},
            "spec.nodeName",
            "Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        (
            {"terminationGracePeriodSeconds": -1},
            "spec.terminationGracePeriodSeconds",
            "Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
            "Required value: must have at least one node selector term",
        ),
    ],
)
def test_a_pod_is_told_what_is_wrong_with_its_spec(spec, field, message):
    assert complaints(PODS, pod(spec=spec)) == {field: message}
