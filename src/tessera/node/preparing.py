"""What a container was given, read from its pod and made into a tile."""

import asyncio
from collections.abc import Mapping

import structlog

from tessera.errors import InvalidInput, StartRefused
from tessera.kube.pods import Pod
from tessera.model.allocations import CardShare
from tessera.model.annotations.binding import AllocationKeys
from tessera.model.catalogue import Catalogue, Vendor
from tessera.model.pod_allocations import read_pod_allocation
from tessera.model.pods import read_pod_ref, read_pod_request
from tessera.model.requests import PodRequest
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile
from tessera.vendors.managers import DeviceManager
from tessera.vendors.rendering import DEFAULT_HOOK_PATH, AllocationRequest, ContainerEdits
from tessera.vendors.rules import refine

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
Shares = tuple[CardShare, ...]


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
        """Whether the container is to have cards of this vendor."""
        try:
            devices = self._request_of(pod).containers[_position(pod, container)].devices
        except InvalidInput as error:
            raise StartRefused(str(error)) from error
        return any(device.vendor == vendor.name for device in devices)

    def shares_of(self, pod: Pod, vendor: Vendor, container: str) -> Shares | None:
        """None where the pod was given nothing, or nothing yet."""
        try:
            allocation = read_pod_allocation(pod, self._request_of(pod), self._keys, self.node)
        except InvalidInput as error:
            raise StartRefused(str(error)) from error
        if allocation is None:
            return None
        return allocation.of_vendor(vendor.name).containers[_position(pod, container)] or None

    async def prepare(
        self, vendor: Vendor, pod: Pod, container: str, *, token: str, ids: frozenset[str], shares: Shares
    ) -> ContainerEdits:
        """Write the tile; from now on its container can be made."""
        ref = read_pod_ref(pod)
        if len(shares) != len(ids):
            raise StartRefused(
                f"{ref}: container {container} has {len(ids)} tiles of {vendor.resources.count} from the kubelet,"
                f" expected {len(shares)}, as many as the cards that the scheduler gave it"
            )
        request = AllocationRequest(
            pod=ref,
            container=container,
            shares=shares,
            node=self.node,
            priority=self._priority_of(pod, vendor, container),
            hook_path=self._hook_path,
        )
        edits = await asyncio.to_thread(self._managers[vendor.name].allocate, request)
        tile = Tile(
            token=token,
            resource=vendor.resources.count,
            ids=tuple(sorted(ids)),
            pod=ref,
            container=container,
            shares=shares,
        )
        try:
            self._store.write(tile, edits)
        except OSError as error:
            raise StartRefused(
                f"{ref}: container {container} cannot be prepared: {error}; see the node's disk"
            ) from error
        log.info("container prepared", pod=str(ref), container=container, cards=[share.uuid for share in shares])
        return edits

    def _request_of(self, pod: Pod) -> PodRequest:
        return read_pod_request(pod, self._catalogue, refine)

    def _priority_of(self, pod: Pod, vendor: Vendor, container: str) -> int:
        devices = self._request_of(pod).containers[_position(pod, container)].devices
        return next((device.priority for device in devices if device.vendor == vendor.name), 0)


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
