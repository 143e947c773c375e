"""A world made of documents, as informers would tell it, without an API server."""

from typing import Any

import msgspec

from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.model.requests import PolicyChoice
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.world import World
from tessera.vendors.loading import load_catalogue
from testbed.node_documents import NodeShape, registered_node

CATALOGUE = load_catalogue()


def a_world(**cards: str) -> World:
    """Nodes by name, each with its cards: `a_world(a="2xA100-SXM4-80GB")`."""
    world = World(CATALOGUE, default=PolicyChoice(node="binpack", cards=("binpack",)))
    for name, plan in cards.items():
        put_node(world, name, plan)
    return world


def node_document(name: str, plan: str) -> dict[str, Any]:
    return registered_node(name, NodeShape(plan, cpu="64", memory="512Gi", pods="110"), CATALOGUE)


def put_node(world: World, name: str, plan: str) -> None:
    put_document(world, node_document(name, plan))


def put_document(world: World, node: dict[str, Any]) -> None:
    world.node_changed(Change(ObjectKey("", node["metadata"]["name"]), None, msgspec.convert(node, CachedNode)))


def a_pod(name: str = "web", *, uid: str = "", memory: int = 0, count: int = 1, **spec: Any) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(count), **({"nvidia.com/gpumem": str(memory)} if memory else {})}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}], **spec},
    }


def see(world: World, pod: dict[str, Any]) -> None:
    """The pod is in the API as it stands."""
    key = ObjectKey(pod["metadata"]["namespace"], pod["metadata"]["name"])
    world.pod_changed(Change(key, None, msgspec.convert(pod, Pod)))


def see_deleted(world: World, pod: dict[str, Any]) -> None:
    key = ObjectKey(pod["metadata"]["namespace"], pod["metadata"]["name"])
    world.pod_changed(Change(key, msgspec.convert(pod, Pod), None))
