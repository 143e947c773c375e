"""Cards for containers of one node of the embedded engine, given as on a kubelet.

The parts are the agent's. What differs is who asks: the runtime asks for a container by name when it is about to start,
so nobody has to find out whose a tile is.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.namespaces import Shown
from tessera.embedded.runtime.parts import listed
from tessera.embedded.runtime.sources import Additions
from tessera.errors import StartRefused
from tessera.kube.objects import Document
from tessera.model.annotations.keys import CLAIM
from tessera.model.catalogue import Catalogue, Vendor
from tessera.model.claims import CLAIMABLE
from tessera.model.devices import Device
from tessera.model.pods import read_pod_ref
from tessera.node.limits import FILE_NAME
from tessera.node.pid_service import serve_pids
from tessera.node.pods import Pod
from tessera.node.preparing import Preparer, Shares, count_tiles
from tessera.node.resizing import Resizer
from tessera.node.run_directory import RunDirectory, make_shared_file
from tessera.node.terms import Permitted
from tessera.node.tile_store import TileStore
from tessera.node.tiles import (
    CLAIM_TILES,
    Tile,
    TileKind,
    claim_tiles_of,
    judge_tiles,
    mount_point,
    tile_ids,
    tiles_of,
)
from tessera.vendors.backends import NVIDIA, CardSources
from tessera.vendors.guard import PRELOADED, find_guard, guard_process, keep_guard
from tessera.vendors.rendering import ContainerEdits
from tessera.vendors.simulated_driver import LIBRARY_PATH


class EmbeddedTiles:
    """`devices_of` are the cards of a vendor as they are now, `lingering` the tiles of pods that are gone but run."""

    def __init__(
        self,
        node: str,
        catalogue: Catalogue,
        sources: CardSources,
        directory: Path,
        permitted: Permitted,
        *,
        devices_of: Callable[[str], Sequence[Device]],
        lingering: Callable[[], Sequence[Tile]],
    ) -> None:
        self._node = node
        self._devices_of = devices_of
        self._lingering = lingering
        self._vendors = [vendor for vendor in catalogue if vendor.name in sources.backends]
        self._store = TileStore(directory, directory / "cdi")
        built = find_guard()
        self._library = keep_guard(built, directory / "library") if built else None
        self.run = run = RunDirectory(directory / "run")
        hook = str(directory / "hook")
        self._preparer = Preparer(
            node, catalogue, sources.managers, self._store, run=run, hook_path=hook, permitted=permitted
        )
        self._resizer = Resizer(catalogue, self._preparer, self._store)

    async def serve(self) -> None:
        """What containers ask of their node. Until cancelled."""
        await serve_pids(self.run.socket)

    @property
    def has_library(self) -> bool:
        """Whether containers with cards of NVIDIA's are kept within their limits."""
        return self._library is not None

    def know_cards(self, devices: Iterable[Device]) -> None:
        self.run.make_cards(device.uuid for device in devices if device.vendor == NVIDIA)

    def all(self) -> tuple[Tile, ...]:
        return tuple(self._store)

    def remove(self, tile: Tile) -> None:
        self._store.remove(tile.token)
        shutil.rmtree(self.run.region(tile.pod.uid, tile.container).parent, ignore_errors=True)

    def shares(self) -> Mapping[str, tuple[int, int]]:
        """How many tiles there are of each resource, and how many are healthy, as the device plugin would tell."""
        healths = {vendor.resources.count: self._judge(vendor) for vendor in self._vendors}
        if self._devices_of(CLAIMABLE):
            healths[CLAIM] = CLAIM_TILES
        return {resource: (len(health), sum(health.values())) for resource, health in healths.items() if health}

    def resize(self, pod: Document) -> None:
        """Containers of the pod that run may have been given more or less of their cards."""
        if any(tile.pod.uid == pod["metadata"]["uid"] for tile in self._store):
            self._resizer.resize(msgspec.convert(pod, Pod))

    async def give(self, pod: Pod, container: str) -> Additions:
        """What the container is given for the cards that its pod has; nothing, if it asks for none."""
        additions = Additions()
        for vendor in self._vendors:
            if kind := self._kind_for(pod, vendor, container):
                additions = joined(additions, await self._give(pod, kind, container))
        return additions

    def _kind_for(self, pod: Pod, vendor: Vendor, container: str) -> TileKind | None:
        """What is claimed is all that the container gets, whatever count it names beside it."""
        if vendor.name == CLAIMABLE and count_tiles(pod, container, CLAIM):
            return claim_tiles_of(vendor)
        return tiles_of(vendor) if self._preparer.asks(pod, vendor, container) else None

    async def _give(self, pod: Pod, kind: TileKind, container: str) -> Additions:
        where = f"{read_pod_ref(pod)}: container {container}"
        given = self._preparer.given_to(pod, kind.vendor, container)
        if given is None:
            raise StartRefused(
                f"{where} was given no {kind.resource} by the scheduler, expected an allocation in the pod's"
                f" annotations; does the pod fit on {self._node}?"
            )
        self._refuse_crowding(given.shares, where)
        tile = self._find(pod, kind, container)
        token = tile.token if tile else self._store.new_token()
        ids = frozenset(tile.ids) if tile else self._free_ids(kind, 1 if kind.by_claim else len(given.shares))
        try:
            edits = await self._preparer.prepare(kind, pod, container, token=token, ids=ids, given=given)
        except BaseException:
            if tile is None:
                self._store.remove(token)
            raise
        if kind.vendor.name == NVIDIA and self._library:
            edits = edits.joined(self._guard(self._library, pod, container, token))
        mounted = mount_point(kind.vendor.name)
        return _additions(edits, Shown(str(self._store.directory(token)), mounted, read_only=True))

    def _guard(self, library: Path, pod: Pod, container: str, token: str) -> ContainerEdits:
        """A process of this machine is kept within its limits as one in a container of its own, told by variables."""
        region = self.run.region(read_pod_ref(pod).uid, container)
        make_shared_file(region)
        limits = self._store.directory(token) / FILE_NAME
        return guard_process(library, limits=limits, region=region, cards=self.run.cards, agent=self.run.socket)

    def _refuse_crowding(self, shares: Shares, where: str) -> None:
        """Processes of a pod that was deleted by force may still be on a card; the runtime asks again."""
        cards = {share.uuid for share in shares}
        if any(share.uuid in cards for tile in self._lingering() for share in tile.shares):
            raise StartRefused(f"{where} would share a card with a pod that was deleted and still runs there")

    def _find(self, pod: Pod, kind: TileKind, container: str) -> Tile | None:
        """What it had when it was started before."""
        mine = (pod.metadata.uid, container, kind.resource)
        return next((tile for tile in self._store if (tile.pod.uid, tile.container, tile.resource) == mine), None)

    def _free_ids(self, kind: TileKind, count: int) -> frozenset[str]:
        taken = {one for tile in self._store if tile.resource == kind.resource for one in tile.ids}
        ids = CLAIM_TILES if kind.by_claim else tile_ids(self._devices_of(kind.vendor.name))
        return frozenset([one for one in ids if one not in taken][:count])

    def _judge(self, vendor: Vendor) -> Mapping[str, bool]:
        mine = [tile for tile in self._store if tile.resource == vendor.resources.count]
        card_of = {tile_id: uuid for tile in mine for tile_id, uuid in tile.cards.items()}
        return judge_tiles(self._devices_of(vendor.name), card_of)


def with_own_libraries(additions: Additions, pod: Frozen, container: str) -> Additions:
    """Libraries that are given come before those that the container names itself, and not in their place."""
    containers = (*listed(pod, "spec", "initContainers"), *listed(pod, "spec", "containers"))
    variables = [variable for one in containers if one["name"] == container for variable in listed(one, "env")]
    joint = dict[str, str]()
    for name in (LIBRARY_PATH, PRELOADED):
        own: list[str] = [one["value"] for one in variables if one["name"] == name and one.get("value")]
        if name in additions.environment:
            joint[name] = os.pathsep.join([additions.environment[name], *own])
    return joined(additions, Additions(environment=joint))


def joined(one: Additions, other: Additions) -> Additions:
    return Additions(
        environment={**one.environment, **other.environment},
        mounts=(*one.mounts, *other.mounts),
        device_paths=(*one.device_paths, *other.device_paths),
    )


def _additions(edits: ContainerEdits, tile: Shown) -> Additions:
    mounts = (Shown(mount.host_path, mount.container_path, mount.read_only) for mount in edits.mounts)
    return Additions(environment=edits.environment, mounts=(tile, *mounts), device_paths=edits.device_paths)
