"""What a container was given, read from its pod and made into a tile."""

import asyncio
from collections.abc import Mapping

import msgspec
import structlog

from tessera.errors import InvalidInput, InvalidQuantity, StartRefused
from tessera.kube.pods import Pod
from tessera.model.allocations import CardShare
from tessera.model.annotations.binding import AllocationKeys
from tessera.model.catalogue import Catalogue, Vendor
from tessera.model.pod_allocations import read_pod_allocation
from tessera.model.pod_documents import NO_RESOURCES
from tessera.model.pods import read_pod_ref, read_pod_request
from tessera.model.quantities import count_of
from tessera.model.requests import DeviceRequest, PodRequest
from tessera.node.claimed import limit_share
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile, TileKind
from tessera.vendors.managers import DeviceManager
from tessera.vendors.rendering import DEFAULT_HOOK_PATH, AllocationRequest, ContainerEdits
from tessera.vendors.rules import refine

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
Shares = tuple[CardShare, ...]


class Given(msgspec.Struct, frozen=True):
    """What a container was given of one vendor's cards; `by_claim`, if they are its pod's as a whole."""

    shares: Shares
    by_claim: bool = False


class Preparer:
    def __init__(
        self,
        node: str,
        catalogue: Catalogue,
        managers: Mapping[str, DeviceManager],
        store: TileStore,
        *,
        hook_path: str = DEFAULT_HOOK_PATH,
    ) -> None:
        self.node = node
        self._catalogue = catalogue
        self._keys: Mapping[str, AllocationKeys] = catalogue.allocation_keys()
        self._managers = managers
        self._store = store
        self._hook_path = hook_path

    def asks(self, pod: Pod, vendor: Vendor, container: str) -> bool:
        """Whether the container is to have cards of this vendor for itself."""
        try:
            return self._asked_by(pod, vendor, container) is not None
        except InvalidInput as error:
            raise StartRefused(str(error)) from error

    def given_to(self, pod: Pod, vendor: Vendor, container: str) -> Given | None:
        """None where the pod was given nothing, or nothing yet."""
        try:
            allocation = read_pod_allocation(pod, self._request_of(pod), self._keys, self.node)
        except InvalidInput as error:
            raise StartRefused(str(error)) from error
        if allocation is None:
            return None
        theirs, position = allocation.of_vendor(vendor.name), _position(pod, container)
        if theirs.claimed:
            return Given(theirs.claimed, by_claim=True)
        return Given(theirs.containers[position]) if theirs.containers[position] else None

    async def prepare(
        self, kind: TileKind, pod: Pod, container: str, *, token: str, ids: frozenset[str], given: Given
    ) -> ContainerEdits:
        """Write the tile; from now on its container can be made."""
        ref = read_pod_ref(pod)
        if len(given.shares) != len(ids) and not given.by_claim:
            raise StartRefused(
                f"{ref}: container {container} has {len(ids)} tiles of {kind.resource} from the kubelet,"
                f" expected {len(given.shares)}, as many as the cards that the scheduler gave it"
            )
        request, edits = await asyncio.to_thread(self._render, kind.vendor, pod, container, given)
        tile = Tile(
            token=token,
            resource=kind.resource,
            ids=tuple(sorted(ids)),
            pod=ref,
            container=container,
            shares=request.shares,
        )
        try:
            self._store.write(tile, edits)
        except OSError as error:
            raise StartRefused(
                f"{ref}: container {container} cannot be prepared: {error}; see the node's disk"
            ) from error
        log.info("container prepared", pod=str(ref), container=container, cards=[share.uuid for share in tile.shares])
        return edits

    def _render(
        self, vendor: Vendor, pod: Pod, container: str, given: Given
    ) -> tuple[AllocationRequest, ContainerEdits]:
        """Asks for the hardware, which may block."""
        asked, manager = self._asked_by(pod, vendor, container), self._managers[vendor.name]
        shares = given.shares
        if given.by_claim and asked:
            shares = tuple(limit_share(share, asked, manager.memory_mib(share.uuid)) for share in shares)
        request = AllocationRequest(
            pod=read_pod_ref(pod),
            container=container,
            shares=shares,
            claimed=given.by_claim,
            node=self.node,
            priority=asked.priority if asked else 0,
            hook_path=self._hook_path,
        )
        return request, manager.allocate(request)

    def _request_of(self, pod: Pod) -> PodRequest:
        return read_pod_request(pod, self._catalogue, refine)

    def _asked_by(self, pod: Pod, vendor: Vendor, container: str) -> DeviceRequest | None:
        devices = self._request_of(pod).containers[_position(pod, container)].devices
        return next((device for device in devices if device.vendor == vendor.name), None)


def count_tiles(pod: Pod, container: str, resource: str) -> int:
    """How many tiles of a resource the kubelet hands to the container."""
    parts = (*(pod.spec.init_containers or ()), *pod.spec.containers)
    resources = parts[_position(pod, container)].resources or NO_RESOURCES
    try:
        return count_of(resources.first_of_limits().get(resource, 0))
    except InvalidQuantity:
        return 0


def container_names(pod: Pod) -> list[str]:
    """In the order of allocations, init containers first."""
    return [part.name for part in (*(pod.spec.init_containers or ()), *pod.spec.containers)]


def _position(pod: Pod, container: str) -> int:
    names = container_names(pod)
    if container not in names:
        raise StartRefused(
            f"{read_pod_ref(pod)}: container {container} is not in the pod, expected one of {', '.join(names)}"
        )
    return names.index(container)
