"""What a pod on a node holds, read from its annotations in the light of what it asks for."""

from collections.abc import Mapping

from tessera.model.allocations import Allocation
from tessera.model.annotations.binding import AllocationKeys, read_allocation
from tessera.model.pod_documents import NO_METADATA, read_document
from tessera.model.pods import read_pod_ref
from tessera.model.requests import PodRequest


def read_pod_allocation(
    pod: object, request: PodRequest, keys: Mapping[str, AllocationKeys], node: str
) -> Allocation | None:
    """The cards that the pod's annotations give it on its node, if they do."""
    said = (read_document(pod).metadata or NO_METADATA).annotations or {}
    annotations = {key: value for key, value in said.items() if isinstance(value, str)}
    where, count = f"pod {read_pod_ref(pod)}", len(request.containers)
    return read_allocation(annotations, keys, count, where, asking=positions_asking(request), node=node)


def positions_asking(request: PodRequest) -> dict[str, list[int]]:
    """Which containers ask for cards of each vendor, by position."""
    positions: dict[str, list[int]] = {}
    for position, container in enumerate(request.containers):
        for device in container.devices:
            positions.setdefault(device.vendor, []).append(position)
    return positions
