"""Cards that a pod has claimed as a whole: every container of it gets all of them, with limits of its own."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tessera.errors import StartRefused
from tessera.model.allocations import CardShare
from tessera.model.annotations import keys
from tessera.node.early import EarlyStarter
from tessera.node.holders import Holder
from tessera.node.limits import limits_text
from tessera.node.pods import Pod
from tessera.node.starting import Starter
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile, TileKind, claim_tiles_of, tiles_of
from tessera.vendors.backends import find_cards
from tessera.vendors.loading import load_catalogue
from tests.builders import a_share
from tests.unit.kube.clocks import HastyClock
from tests.unit.node.making import NODE, a_claim_container, a_claim_pod, a_preparer

pytestmark = pytest.mark.asyncio
CATALOGUE = load_catalogue()
(VENDOR,) = (vendor for vendor in CATALOGUE if vendor.name == "NVIDIA")
BY_CLAIM, BY_COUNT = claim_tiles_of(VENDOR), tiles_of(VENDOR)
SOURCES = find_cards(NODE, CATALOGUE, plan="4xT4", exists=lambda _: False)
CARDS = tuple(device.uuid for device in SOURCES.managers["NVIDIA"].discover())
T4_MIB = 15_360
ONE = frozenset({"tile-0"})


def whole(*positions: int) -> tuple[CardShare, ...]:
    return tuple(a_share(CARDS[position], T4_MIB, 100) for position in positions)


def unlimited(*positions: int) -> tuple[CardShare, ...]:
    return tuple(a_share(CARDS[position], 0, 0) for position in positions)


class Bed:
    """It is its own kubelet."""

    def __init__(self, root: Path) -> None:
        self.pod: Pod | None = None
        self.kept: list[Holder] = []
        self.store = TileStore(root / "state", root / "cdi")
        self.cdi = root / "cdi"
        clock = HastyClock()
        self.starter = Starter(
            a_preparer(root, SOURCES, self.store),
            self,  # type: ignore[arg-type] # as much of a kubelet as is asked
            self.store,
            find_pod=lambda _: self.pod,
            lingering=lambda: (),
            clock=clock,
        )
        self.early = EarlyStarter(self.starter, self.store, lambda: [self.pod] if self.pod else [], clock=clock)

    def kept_holders(self) -> Iterable[Holder]:
        return tuple(self.kept)

    async def list_holders(self) -> tuple[Holder, ...]:
        return ()

    async def start(self, container: str = "main", kind: TileKind = BY_CLAIM, ids: frozenset[str] = ONE) -> Tile:
        """The kubelet admits the container and is about to start it; the tile that it gets."""
        token = self.starter.answer(kind.resource, ids)
        held = Holder(resource=kind.resource, ids=ids, container=container, pod_uid="uid-1", token=token)
        self.kept.append(held)
        await self.starter.start(kind, ids)
        (tile,) = [tile for tile in self.store if tile.token == token]
        return tile

    def specification(self, tile: Tile) -> str:
        return (self.cdi / f"tessera-tile-{tile.token}.json").read_text()


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


async def test_every_container_gets_all_claimed_cards_for_one_tile(bed: Bed):
    bed.pod = a_claim_pod(*whole(2, 3), init=(a_claim_container("first"),))
    for container in ("first", "main"):
        tile = await bed.start(container, ids=frozenset({f"tile-{container}"}))
        assert (tile.shares, tile.resource) == (whole(2, 3), keys.CLAIM)
        assert f"NVIDIA_VISIBLE_DEVICES={CARDS[2]},{CARDS[3]}" in bed.specification(tile)
        assert f"CUDA_VISIBLE_DEVICES={CARDS[2]},{CARDS[3]}" in bed.specification(tile)


async def test_a_container_is_limited_by_its_own_figures_and_the_next_by_what_was_claimed(bed: Bed):
    limited = a_claim_container("limited", gpumem=2000, gpucores=30)
    bed.pod = a_claim_pod(*whole(0), containers=(limited, a_claim_container()))
    assert (await bed.start("limited")).shares == (a_share(CARDS[0], 2000, 30),)
    assert (await bed.start("main", ids=frozenset({"tile-1"}))).shares == whole(0)


async def test_a_percentage_is_of_the_cards_memory_and_no_more_than_was_claimed(bed: Bed):
    half = a_claim_container("half", **{"gpumem-percentage": 50})
    greedy = a_claim_container("greedy", gpumem=99_999)
    bed.pod = a_claim_pod(*whole(0), containers=(half, greedy))
    assert (await bed.start("half")).shares[0].memory_mib == T4_MIB // 2
    assert (await bed.start("greedy", ids=frozenset({"tile-1"}))).shares[0].memory_mib == T4_MIB


async def test_shared_cards_without_figures_are_not_limited_and_nowhere_limited_to_nothing(bed: Bed):
    bed.pod = a_claim_pod(*unlimited(1))
    tile = await bed.start()
    assert f"card {CARDS[1]} memory_mib 0 cores_percent 0\n" in limits_text(tile)
    assert "CUDA_DEVICE_MEMORY_LIMIT" not in bed.specification(tile), "not a limit of no bytes"


async def test_a_container_that_names_a_count_beside_the_claim_gets_the_same_cards_by_both(bed: Bed):
    bed.pod = a_claim_pod(*whole(2, 3), containers=(a_claim_container(gpu=1, gpumem=2000),))
    by_claim, by_count = await bed.start(), await bed.start(kind=BY_COUNT)
    assert by_claim.shares == by_count.shares == tuple(a_share(CARDS[at], 2000, 100) for at in (2, 3))
    assert f"CUDA_VISIBLE_DEVICES={CARDS[2]},{CARDS[3]}" in bed.specification(by_count)


async def test_a_claim_pod_that_was_given_nothing_is_refused_in_one_sentence(bed: Bed):
    bed.pod = a_claim_pod()
    with pytest.raises(StartRefused, match=r"^default/train-0: container main was given no gpu.scheduling/claim by"):
        await bed.start()
    assert list(bed.store) == []


async def test_without_cdi_each_container_of_a_claim_is_found_by_its_one_tile(bed: Bed):
    bed.pod = a_claim_pod(*whole(2, 3), init=(a_claim_container("first"),), containers=(a_claim_container(gpu=1),))
    _, first = await bed.early.answer(BY_CLAIM, ONE)
    _, main = await bed.early.answer(BY_CLAIM, frozenset({"tile-1"}))
    _, counted = await bed.early.answer(BY_COUNT, ONE)
    for edits in (first, main, counted):
        assert edits.environment["NVIDIA_VISIBLE_DEVICES"] == f"{CARDS[2]},{CARDS[3]}"
    assert [tile.container for tile in bed.store] == ["first", "main", "main"]
