"""What a container was given, read from its pod and made into a tile."""

import asyncio
from collections.abc import Mapping

import msgspec
import structlog

from tessera.errors import InvalidInput, InvalidQuantity, StartRefused
from tessera.model.allocations import CardShare
from tessera.model.annotations.binding import AllocationKeys
from tessera.model.catalogue import Catalogue, Vendor
from tessera.model.pod_allocations import read_pod_allocation
from tessera.model.pod_documents import NO_RESOURCES
from tessera.model.pods import read_pod_ref, read_pod_request
from tessera.model.quantities import count_of
from tessera.model.requests import DeviceRequest, PodRequest
from tessera.node.claimed import limit_share
from tessera.node.pods import Pod
from tessera.node.regions import discard_region
from tessera.node.run_directory import RunDirectory
from tessera.node.terms import NOTHING_MORE, Permitted, Terms, read_terms
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile, TileKind
from tessera.vendors.managers import DeviceManager
from tessera.vendors.rendering import DEFAULT_HOOK_PATH, AllocationRequest, ContainerEdits
from tessera.vendors.rules import refine

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
Shares = tuple[CardShare, ...]
LAST_WORDS, USUAL_LAST_WORDS = "TESSERA_TERMINATION_LOG", "/dev/termination-log"


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
        run: RunDirectory,
        hook_path: str = DEFAULT_HOOK_PATH,
        permitted: Permitted = NOTHING_MORE,
    ) -> None:
        self.node = node
        self._catalogue = catalogue
        self._keys: Mapping[str, AllocationKeys] = catalogue.allocation_keys()
        self._managers = managers
        self._store = store
        self._run = run
        self._hook_path = hook_path
        self._permitted = permitted

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
        terms = self._terms_of(pod, kind.vendor, container)
        request, edits = await asyncio.to_thread(self._render, kind.vendor, pod, container, given, terms)
        edits = edits.joined(_last_words(pod, container))
        tile = Tile(
            token=token,
            resource=kind.resource,
            ids=tuple(sorted(ids)),
            pod=ref,
            container=container,
            shares=request.shares,
            terms=terms,
        )
        try:
            discard_region(self._run.region(ref.uid, container))
            self._store.write(tile, edits)
        except OSError as error:
            raise _unprepared(tile, error) from error
        log.info("container prepared", pod=str(ref), container=container, cards=[share.uuid for share in tile.shares])
        return edits

    def renew(self, tile: Tile) -> None:
        """A container starts again with the tile that it had."""
        try:
            discard_region(self._run.region(tile.pod.uid, tile.container))
            self._store.make_again(tile.token)
        except OSError as error:
            raise _unprepared(tile, error) from error

    def _render(
        self, vendor: Vendor, pod: Pod, container: str, given: Given, terms: Terms
    ) -> tuple[AllocationRequest, ContainerEdits]:
        """Asks for the hardware, which may block."""
        request = AllocationRequest(
            pod=read_pod_ref(pod),
            container=container,
            shares=self.shares_for(pod, vendor, container, given),
            claimed=given.by_claim,
            node=self.node,
            priority=terms.priority,
            hook_path=self._hook_path,
            run_path=str(self._run.root),
        )
        return request, self._managers[vendor.name].allocate(request)

    def shares_for(self, pod: Pod, vendor: Vendor, container: str, given: Given) -> Shares:
        """What is claimed is limited further by what the container says of itself."""
        asked, manager = self._asked_by(pod, vendor, container), self._managers[vendor.name]
        if not given.by_claim or asked is None:
            return given.shares
        return tuple(limit_share(share, asked, manager.memory_mib(share.uuid)) for share in given.shares)

    def _terms_of(self, pod: Pod, vendor: Vendor, container: str) -> Terms:
        asked = self._asked_by(pod, vendor, container)
        try:
            its = pod.all_containers[_position(pod, container)]
            return read_terms(its, vendor.term_variables, self._permitted, asked.priority if asked else 0)
        except InvalidInput as error:
            raise StartRefused(f"{read_pod_ref(pod)}: {error}") from error

    def _request_of(self, pod: Pod) -> PodRequest:
        return read_pod_request(pod, self._catalogue, refine)

    def _asked_by(self, pod: Pod, vendor: Vendor, container: str) -> DeviceRequest | None:
        devices = self._request_of(pod).containers[_position(pod, container)].devices
        return next((device for device in devices if device.vendor == vendor.name), None)


def count_tiles(pod: Pod, container: str, resource: str) -> int:
    """How many tiles of a resource the kubelet hands to the container."""
    resources = pod.all_containers[_position(pod, container)].resources or NO_RESOURCES
    try:
        return count_of(resources.first_of_limits().get(resource, 0))
    except InvalidQuantity:
        return 0


def container_names(pod: Pod) -> list[str]:
    """In the order of allocations, init containers first."""
    return [part.name for part in pod.all_containers]


def _last_words(pod: Pod, container: str) -> ContainerEdits:
    """Where the library leaves its sentence, if the container ends by a refusal and wants it elsewhere than usual."""
    path = pod.all_containers[_position(pod, container)].termination_message_path
    return ContainerEdits(environment={LAST_WORDS: path} if path and path != USUAL_LAST_WORDS else {})


def _unprepared(tile: Tile, error: OSError) -> StartRefused:
    return StartRefused(f"{tile.pod}: container {tile.container} cannot be prepared: {error}; see the node's disk")


def _position(pod: Pod, container: str) -> int:
    names = container_names(pod)
    if container not in names:
        raise StartRefused(
            f"{read_pod_ref(pod)}: container {container} is not in the pod, expected one of {', '.join(names)}"
        )
    return names.index(container)
