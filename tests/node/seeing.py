"""What a container was promised by its pod's annotations, against what it found when it ran."""

from typing import Any, NamedTuple

from tessera.model.pod_allocations import read_pod_allocation
from tessera.model.pods import read_pod_request
from tessera.vendors.loading import load_catalogue
from tessera.vendors.rules import refine
from tests.node.conftest import GpuNode

CATALOGUE = load_catalogue()


class Share(NamedTuple):
    uuid: str
    memory_mib: int
    cores_percent: int


def promised(pod: dict[str, Any]) -> dict[str, tuple[Share, ...]]:
    """By container, in the order in which it is to see its cards."""
    request = read_pod_request(pod, CATALOGUE, refine)
    allocation = read_pod_allocation(pod, request, CATALOGUE.allocation_keys(), pod["spec"]["nodeName"])
    assert allocation is not None, f"{pod['metadata']['name']} was given nothing"
    return {
        name: tuple(Share(share.uuid, share.memory_mib, share.cores_percent) for share in shares)
        for name, shares in zip(container_names(pod), allocation.containers, strict=True)
    }


def container_names(pod: dict[str, Any]) -> list[str]:
    spec = pod["spec"]
    return [container["name"] for container in (*spec.get("initContainers", ()), *spec["containers"])]


def assert_sees_what_it_was_given(node: GpuNode, pod: dict[str, Any]) -> int:
    """Every run of every container; returns how many runs there were."""
    runs = 0
    for container, shares in promised(pod).items():
        found = node.runs_of(pod, container)
        assert found, f"{pod['metadata']['name']}: container {container} has never run"
        for printed in found:
            assert seen_cards(printed) == [share.uuid for share in shares]
            assert seen_memory(printed) == [share.memory_mib for share in shares]
            assert seen_limits(printed) == list(shares)
            assert f"pod default {pod['metadata']['name']} {pod['metadata']['uid']}\n" in printed
            assert f"container {container}\n" in printed
            runs += 1
    return runs


def seen_cards(printed: str) -> list[str]:
    return _variable(printed, "NVIDIA_VISIBLE_DEVICES").split(",")


def seen_memory(printed: str) -> list[int]:
    prefix = "CUDA_DEVICE_MEMORY_LIMIT_"
    lines = sorted(line for line in printed.splitlines() if line.startswith(prefix))
    return [int(line.partition("=")[2].removesuffix("m")) for line in lines]


def seen_limits(printed: str) -> list[Share]:
    cards = [line.split() for line in printed.splitlines() if line.startswith("card ")]
    return [Share(uuid, int(memory), int(cores)) for _, uuid, _, memory, _, cores in cards]


def _variable(printed: str, name: str) -> str:
    return next(line.partition("=")[2] for line in printed.splitlines() if line.startswith(f"{name}="))
