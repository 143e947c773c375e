"""Without CDI: the container is guessed when its pod is admitted, and the guess is checked when it starts."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tessera.errors import StartRefused
from tessera.model.annotations.keys import VGPU_TIME
from tessera.node.early import EarlyStarter
from tessera.node.holders import Holder
from tessera.node.pods import Pod
from tessera.node.run_directory import RunDirectory
from tessera.node.starting import Starter
from tessera.node.tile_store import TileStore
from tessera.node.tiles import tiles_of
from tessera.vendors.backends import find_cards
from tessera.vendors.loading import load_catalogue
from tests.builders import a_share
from tests.unit.kube.clocks import HastyClock
from tests.unit.node.making import ALLOCATED, NODE, RESOURCE, a_container, a_pod, a_preparer

pytestmark = pytest.mark.asyncio
CATALOGUE = load_catalogue()
(NVIDIA,) = (tiles_of(vendor) for vendor in CATALOGUE if vendor.name == "NVIDIA")
SOURCES = find_cards(NODE, CATALOGUE, plan="2xT4")
T4, OTHER_T4 = (device.uuid for device in SOURCES.managers["NVIDIA"].discover())
ONE, TWO = frozenset({"tile-0"}), frozenset({"tile-0", "tile-1"})


class Bed:
    """It is its own kubelet."""

    def __init__(self, root: Path) -> None:
        self.pods: list[Pod] = []
        self.kept: list[Holder] = []
        self.store = TileStore(root / "state", root / "cdi")
        self.clock = HastyClock()
        self.hosts_library = root / "hook" / "tessera" / "libtessera.so"
        self.region = RunDirectory(root / "run").region("uid-1", "main")
        starter = Starter(
            a_preparer(root, SOURCES, self.store),
            self,  # type: ignore[arg-type] # as much of a kubelet as is asked
            self.store,
            find_pod=lambda _: None,
            lingering=lambda: (),
            clock=self.clock,
        )
        self.early = EarlyStarter(starter, self.store, lambda: self.pods, clock=self.clock)

    def kept_holders(self) -> Iterable[Holder]:
        return tuple(self.kept)

    async def list_holders(self) -> tuple[Holder, ...]:
        return ()

    async def admit(self, ids: frozenset[str] = ONE, *, uid: str = "uid-1", container: str = "main") -> dict[str, str]:
        """The kubelet asks for tiles and writes down for whom; what the container gets in its environment."""
        token, edits = await self.early.answer(NVIDIA, ids)
        self.kept.append(Holder(resource=RESOURCE, ids=ids, container=container, pod_uid=uid, token=token))
        return edits.environment


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


def pod(uid: str, *uuids: str, at: int = 0) -> Pod:
    """A pod whose one container was given these cards."""
    shares = tuple(a_share(uuid, 1000, 10) for uuid in uuids)
    containers = (a_container(gpu=len(uuids)),)
    return a_pod(shares, uid=uid, containers=containers, annotations={VGPU_TIME: str(1_700_000_000 + at)})


async def test_the_pod_that_waits_gets_its_cards_in_the_answer_and_may_start(bed: Bed):
    bed.pods = [pod("uid-1", OTHER_T4)]
    environment = await bed.admit()
    assert environment["NVIDIA_VISIBLE_DEVICES"] == OTHER_T4
    await bed.early.start(NVIDIA, ONE)


async def test_a_container_that_starts_again_finds_what_a_boot_of_the_machine_took_away(bed: Bed):
    bed.pods = [pod("uid-1", OTHER_T4)]
    bed.hosts_library.parent.mkdir(parents=True)
    bed.hosts_library.touch()
    await bed.admit()
    bed.region.unlink()
    await bed.early.start(NVIDIA, ONE)
    assert bed.region.read_bytes() == b""


async def test_of_the_pods_that_wait_the_one_that_asks_for_as_many_cards_is_meant(bed: Bed):
    bed.pods = [pod("uid-1", T4), pod("uid-2", T4, OTHER_T4)]
    assert (await bed.admit(TWO, uid="uid-2"))["NVIDIA_VISIBLE_DEVICES"] == f"{T4},{OTHER_T4}"


async def test_of_two_alike_the_one_that_was_bound_first_is_meant_and_then_the_other(bed: Bed):
    bed.pods = [pod("uid-1", T4, at=5), pod("uid-2", OTHER_T4, at=3)]
    assert (await bed.admit(uid="uid-2"))["NVIDIA_VISIBLE_DEVICES"] == OTHER_T4
    assert (await bed.admit(uid="uid-1"))["NVIDIA_VISIBLE_DEVICES"] == T4


async def test_containers_of_one_pod_come_in_their_order(bed: Bed):
    first, second = (a_share(T4, 500, 10),), (a_share(T4, 900, 10),)
    bed.pods = [a_pod(first, second, init=(a_container("first"),))]
    assert (await bed.admit(container="first"))["CUDA_DEVICE_MEMORY_LIMIT_0"] == "500m"
    assert (await bed.admit(container="main"))["CUDA_DEVICE_MEMORY_LIMIT_0"] == "900m"
    await bed.early.start(NVIDIA, ONE)


async def test_where_nobody_waits_the_answer_is_refused_soon(bed: Bed):
    with pytest.raises(StartRefused, match=r"^no pod waits on gpu-1 for 1 tiles of nvidia.com/gpu, expected one with"):
        await bed.admit()
    assert sum(bed.clock.slept_s) < 10, "the kubelet admits nobody else meanwhile"


async def test_a_pod_that_cannot_be_read_is_in_nobody_elses_way(bed: Bed):
    odd = a_pod(uid="uid-0", annotations={ALLOCATED: "GPU-0,NVIDIA,much,10:;", VGPU_TIME: "1"})
    bed.pods = [odd, pod("uid-1", T4)]
    assert (await bed.admit())["NVIDIA_VISIBLE_DEVICES"] == T4


async def test_a_container_with_anothers_cards_is_not_started(bed: Bed):
    bed.pods = [pod("uid-1", T4)]
    await bed.admit(uid="uid-2")
    with pytest.raises(
        StartRefused, match=r"pod with UID uid-2 was given the cards of default/train-0, container main"
    ):
        await bed.early.start(NVIDIA, ONE)
