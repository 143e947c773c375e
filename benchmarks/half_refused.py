"""A cluster in which every second node has cards that are too small for whoever asks, with pods that run there already.

As documents, so that a ledger in this process and an API server can be filled with the same.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from tessera.kube.caching import Change
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.pods import Pod
from tessera.model.annotations.binding import bind_marks
from tessera.model.requests import PolicyChoice
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.world import World
from tessera.vendors.loading import load_catalogue
from testbed.node_documents import NodeShape, registered_node

CATALOGUE = load_catalogue()
LARGE, SMALL = NodeShape("8xA100-SXM4-80GB"), NodeShape("8xV100-SXM2-16GB")
BOUND_MIB = (2_000, 4_000, 8_000, 10_000)
ASKED_MIB = (20_000, 24_000, 28_000, 32_000)


def node_name(number: int) -> str:
    return f"gpu-{number:05}"


def node_documents(count: int) -> Iterator[Document]:
    for number in range(count):
        yield registered_node(node_name(number), LARGE if number % 2 else SMALL, CATALOGUE)


def asking_pod(number: int) -> Document:
    return _pod(f"asking-{number}", ASKED_MIB[number % len(ASKED_MIB)])


def _pod(name: str, memory: int) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(memory)}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {
            "schedulerName": "hami-scheduler",
            "containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}],
        },
    }


def fill(world: World, nodes: int, pods: int) -> list[Document]:
    """Put nodes and bound pods into the world; the pods."""
    for document in node_documents(nodes):
        key = ObjectKey("", document["metadata"]["name"])
        world.node_changed(Change(key, None, msgspec.convert(document, CachedNode)))
    found = [_bound_pod(world, number, nodes) for number in range(pods)]
    return [pod for pod in found if pod is not None]


def a_world() -> World:
    return World(CATALOGUE, default=PolicyChoice(node="binpack", cards=("binpack",)))


def _bound_pod(world: World, number: int, nodes: int) -> Document | None:
    """A pod on the next node in turn; None where that is full."""
    pod = _pod(f"pod-{number}", BOUND_MIB[number % len(BOUND_MIB)])
    fleet = world.ledger.fleet
    allocation = world.decider.allocate(world.request_of(pod), fleet.row_of[node_name(number % nodes)])
    if allocation is None:
        return None
    indexes = {uuid: index for index, uuid in enumerate(fleet.uuids[fleet.row_of[allocation.node]])}
    pod["metadata"]["annotations"] = bind_marks(allocation, indexes, CATALOGUE.allocation_keys(), 1)[0]
    pod["spec"]["nodeName"] = allocation.node
    world.pod_changed(Change(ObjectKey("default", f"pod-{number}"), None, msgspec.convert(pod, Pod)))
    return pod
