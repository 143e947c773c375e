"""A real API server asks our webhook about pods that claim cards."""

import pytest

from tests.admission.conftest import a_pod

MARKER = {"gpu.scheduling/claim": "1"}
MINE = {"gpu.scheduling/claim": "mine"}
PIN = {"gpu.scheduling/allocated": "node-a:0,1"}
LATE = {
    "name": "CUDA_VISIBLE_DEVICES",
    "valueFrom": {
        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.annotations['gpu.scheduling/visible-devices']"}
    },
}


@pytest.fixture
def paths(webhook):
    webhook.paths.clear()
    return webhook.paths


def a_large_pod(name, namespace, **metadata):
    """With a container, an init container and a sidecar."""
    pod = a_pod(name, namespace, **metadata)
    fetch = {"name": "fetch", "image": "none", "env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "all"}]}
    watch = {"name": "watch", "image": "none", "restartPolicy": "Always"}
    pod["spec"]["initContainers"] = [fetch, watch]
    return pod


def all_containers(pod):
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def test_every_container_of_a_pod_with_a_claim_is_marked_and_told_late(admission_api, namespace, paths):
    pod = admission_api.create(a_large_pod("claiming", namespace, annotations=MINE))
    assert pod["spec"]["schedulerName"] == "gpu-scheduler"
    for container in all_containers(pod):
        assert container["resources"] == {"limits": MARKER, "requests": MARKER}
        assert container["env"] == [LATE]
    assert paths == ["/mutate"]


def test_a_pin_is_told_literally(admission_api, namespace, paths):
    pod = admission_api.create(a_large_pod("pinned", namespace, annotations=PIN))
    assert [one["env"] for one in all_containers(pod)] == [[{"name": "CUDA_VISIBLE_DEVICES", "value": "0,1"}]] * 3
    assert paths == ["/mutate"]


def test_a_pod_that_is_asked_about_twice_is_changed_once(admission_api, namespace, paths):
    plain = a_large_pod("claiming", namespace, annotations=MINE)
    once = admission_api.create(plain, "--dry-run=server")
    plain["spec"]["schedulerName"] = "gpu-scheduler"
    twice = admission_api.create(plain, "--dry-run=server")
    assert paths == ["/mutate", "/webhook", "/mutate"]
    for field in ("env", "resources"):
        assert [one[field] for one in all_containers(twice)] == [one[field] for one in all_containers(once)]


def test_a_claim_beside_a_card_keeps_the_figures(admission_api, namespace, paths):
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000"}
    (container,) = all_containers(admission_api.create(a_pod("both", namespace, limits=limits, annotations=MINE)))
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8k"} | MARKER
    assert paths == ["/webhook", "/mutate"]


@pytest.mark.parametrize(
    ("hook", "pod", "sentence"),
    [
        ("claims.gpu.scheduling", {"annotations": {"gpu.scheduling/claim": ""}}, 'gpu.scheduling/claim is ""'),
        (
            "claims.gpu.scheduling",
            {"annotations": {"gpu.scheduling/allocated": "0,1"}},
            'gpu.scheduling/allocated is "0,1", expected a node and the ids of its cards such as node-a:0,1',
        ),
        ("vgpu.hami.io", {"limits": MARKER}, "container train asks for the resource gpu.scheduling/claim"),
    ],
)
@pytest.mark.usefixtures("webhook")
def test_what_cannot_be_meant_is_denied(admission_api, namespace, hook, pod, sentence):
    said = admission_api.refusal("create", "-f", "-", input=a_pod("wrong", namespace, **pod))
    assert f'admission webhook "{hook}" denied the request: {namespace}/wrong: {sentence}' in said
