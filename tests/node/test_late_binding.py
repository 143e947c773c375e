"""Sixty pods of mixed shapes come to one node at once, and every container sees its own cards."""

from collections.abc import Callable
from typing import Any

import pytest

from testbed.checking import check
from tests.node.conftest import WAIT, GpuNode, a_container, a_pod
from tests.node.seeing import assert_sees_what_it_was_given

pytestmark = pytest.mark.timeout(600)
PODS = 60
RECOVERY_S = 240
FAIL_ONCE = "test -e /scratch/failed || { touch /scratch/failed; exit 1; }; "
SCRATCH = [{"name": "scratch", "emptyDir": {}}]


def scratch(container: dict[str, Any]) -> dict[str, Any]:
    return container | {"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}


def one_share(name: str) -> dict[str, Any]:
    return a_pod(name, a_container(memory=1000))


def two_cards(name: str) -> dict[str, Any]:
    return a_pod(name, a_container(count=2, memory=1500, cores=5))


def two_containers(name: str) -> dict[str, Any]:
    return a_pod(name, a_container("left", memory=700), a_container("right", memory=800, cores=5))


def init_of_another_shape(name: str) -> dict[str, Any]:
    return a_pod(name, a_container(memory=900), initContainers=[a_container("first", memory=1100, then="exit 0")])


def init_of_the_same_shape_twice(name: str) -> dict[str, Any]:
    first, second = (a_container(name, memory=memory, then="exit 0") for name, memory in (("one", 600), ("two", 650)))
    return a_pod(name, a_container(memory=610), initContainers=[first, second])


def init_that_fails_once(name: str) -> dict[str, Any]:
    init = scratch(a_container("first", memory=400, then=FAIL_ONCE + "exit 0"))
    return a_pod(name, a_container(memory=500), initContainers=[init], volumes=SCRATCH)


def sidecar(name: str) -> dict[str, Any]:
    beside = a_container("beside", memory=300) | {"restartPolicy": "Always"}
    return a_pod(name, a_container(memory=350), initContainers=[beside])


def restarting(name: str) -> dict[str, Any]:
    return a_pod(name, scratch(a_container(memory=450, then=FAIL_ONCE + WAIT)), volumes=SCRATCH)


SHAPES = (
    one_share,
    two_cards,
    two_containers,
    init_of_another_shape,
    init_of_the_same_shape_twice,
    init_that_fails_once,
    sidecar,
    restarting,
)


def test_every_container_of_sixty_pods_sees_exactly_its_cards_through_a_restart_of_the_kubelet(gpu_node: GpuNode):
    names = [f"pod-{number:02}" for number in range(PODS)]
    gpu_node.create(*(shape_of(name)(name) for name in names))
    gpu_node.wait_until(lambda: len(bound(gpu_node)) == PODS, "given all pods")
    gpu_node.wait_until(lambda: len(started(gpu_node)) >= PODS // 2, "running half of the pods")
    assert len(started(gpu_node)) < PODS, "the kubelet was to be restarted while pods start"
    gpu_node.cluster.node.kubelet.restart()
    # For each container that was being made just then, the new kubelet looks three seconds for a task that never was.
    gpu_node.wait_until_running(*names, timeout_s=RECOVERY_S)
    gpu_node.wait_until(lambda: not unready(gpu_node), "past the restarts of containers", timeout_s=RECOVERY_S)

    pods = gpu_node.pods()
    runs = sum(assert_sees_what_it_was_given(gpu_node, pods[name]) for name in names)
    assert runs > PODS * 1.5, "init containers, sidecars and restarts were to be among them"
    events = gpu_node.cluster.kubectl("get", "events")
    assert "UnexpectedAdmissionError" not in events
    assert not check(gpu_node.cluster.kubeconfig).problems


def shape_of(name: str) -> Callable[[str], dict[str, Any]]:
    return SHAPES[int(name[-2:]) % len(SHAPES)]


def bound(node: GpuNode) -> list[str]:
    return [name for name, pod in node.pods().items() if pod["spec"].get("nodeName")]


def started(node: GpuNode) -> list[str]:
    return [name for name, pod in node.pods().items() if pod["status"].get("phase") == "Running"]


def unready(node: GpuNode) -> list[str]:
    """Pods with a container that is not up, or that was to be restarted and was not yet."""
    return [
        name
        for name, pod in node.pods().items()
        for container in pod["status"].get("containerStatuses", ())
        if not container["ready"] or (shape_of(name) is restarting and not container["restartCount"])
    ]
