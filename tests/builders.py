"""Small nodes, cards and pods for tests; every figure that a test cares about is an argument."""

from typing import Any

from tessera.model.allocations import Allocation, CardShare
from tessera.model.devices import Device, Host, Node
from tessera.model.requests import ContainerRequest, DeviceRequest, HostRequest, PodRef, PodRequest, Role

GIB = 2**30


def a_card(uuid: str = "GPU-0", **changes: Any) -> Device:
    """A card of 16 GiB that ten pods may share."""
    figures: dict[str, Any] = {"vendor": "NVIDIA", "model": "NVIDIA A100", "slots": 10, "memory_mib": 16_384}
    return Device(uuid=uuid, **{**figures, **changes})


def a_node(name: str = "node-a", *cards: Device, links: Any = (), cordoned: Any = (), **host: Any) -> Node:
    """A roomy, ready node with these cards; further figures go to its host."""
    figures: dict[str, Any] = {"cpu_milli": 64_000, "memory_bytes": 256 * GIB, "pods": 110}
    return Node(
        name=name,
        host=Host(**{**figures, **host}),
        devices=cards,
        links=tuple(links),
        cordoned_uuids=frozenset(cordoned),
    )


def a_want(count: int = 1, *, vendor: str = "NVIDIA", **figures: Any) -> DeviceRequest:
    """What one container asks of one vendor's cards."""
    return DeviceRequest(vendor=vendor, count=count, **figures)


def a_pod(*containers: ContainerRequest | DeviceRequest, policy: Any = None, **host: Any) -> PodRequest:
    """A pod of these containers; a bare device request becomes an app container that asks for it."""
    parts = tuple(
        part if isinstance(part, ContainerRequest) else ContainerRequest(Role.APP, (part,)) for part in containers
    )
    request = PodRequest(containers=parts, host=HostRequest(**host))
    return request if policy is None else PodRequest(containers=parts, host=HostRequest(**host), policy=policy)


def an_init(*wants: DeviceRequest) -> ContainerRequest:
    return ContainerRequest(Role.INIT, wants)


def a_sidecar(*wants: DeviceRequest) -> ContainerRequest:
    return ContainerRequest(Role.SIDECAR, wants)


def an_app(*wants: DeviceRequest) -> ContainerRequest:
    return ContainerRequest(Role.APP, wants)


def a_ref(uid: str = "uid-1", *, namespace: str = "default", name: str = "") -> PodRef:
    return PodRef(namespace, name or f"pod-{uid}", uid)


def a_share(uuid: str = "GPU-0", memory_mib: int = 0, cores_percent: int = 0, *, vendor: str = "NVIDIA") -> CardShare:
    return CardShare(uuid=uuid, vendor=vendor, memory_mib=memory_mib, cores_percent=cores_percent)


def an_allocation(node: str = "node-a", *containers: CardShare | tuple[CardShare, ...]) -> Allocation:
    """Who gets what on the node, container by container; a bare share is a container with one card."""
    return Allocation(node, tuple(part if isinstance(part, tuple) else (part,) for part in containers))
