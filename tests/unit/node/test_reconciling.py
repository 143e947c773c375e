"""What the kubelet says is held, against what the scheduler gave."""

import asyncio
import os
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tessera.errors import KubeletFailed
from tessera.kube.event_series import ObjectReference
from tessera.node.holders import Holder
from tessera.node.pods import Pod
from tessera.node.reconciling import EVERY_S, YOUNG_S, Reconciliation
from tessera.node.strays import Strays
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile
from tessera.vendors.loading import load_catalogue
from tessera.vendors.rendering import ContainerEdits
from tests.builders import a_share
from tests.unit.kube.clocks import FakeClock
from tests.unit.node.making import ALLOCATED, NODE, RESOURCE, a_pod, a_tile

pytestmark = pytest.mark.asyncio
CATALOGUE = load_catalogue()
GIVEN = (a_share("GPU-0", 1000, 10),)
OTHER = (a_share("GPU-1", 1000, 10),)


class Told(NamedTuple):
    about: ObjectReference
    reason: str
    sentence: str


class Bed:
    """It is its own kubelet, recorder and starter."""

    def __init__(self, root: Path) -> None:
        self.store = TileStore(root / "state", root / "cdi")
        self.pods: dict[str, Pod] = {}
        self.alive: set[str] = set()
        self.told: list[Told] = []
        self.forgotten: set[str] = set()
        self.kept: tuple[Holder, ...] = ()
        self.is_away = False
        self.clock = FakeClock()
        self.reconciliation = Reconciliation(
            self,  # type: ignore[arg-type] # as much of a kubelet as is asked
            self.store,
            self,  # type: ignore[arg-type] # a starter that forgets
            Strays(NODE, CATALOGUE, self.pods.get),
            self,  # type: ignore[arg-type] # a recorder
            find_pod=self.pods.get,
            has_ended=lambda uid: uid not in self.alive,
            clock=self.clock,
        )

    def warning(self, about: ObjectReference, reason: str, sentence: str) -> None:
        self.told.append(Told(about, reason, sentence))

    def forget(self, tokens: set[str]) -> None:
        self.forgotten |= tokens

    def kept_holders(self) -> tuple[Holder, ...]:
        return self.kept

    async def list_holders(self) -> tuple[Holder, ...]:
        if self.is_away:
            raise KubeletFailed("the kubelet does not answer")
        return ()

    def write(self, uid: str = "uid-1") -> Tile:
        tile = a_tile(self.store.new_token(), *GIVEN, uid=uid)
        self.store.write(tile, ContainerEdits())
        return tile

    def look(self, *held: str) -> None:
        self.reconciliation.look([holder_of(token) for token in held])

    def age(self, token: str, seconds: float) -> None:
        then_s = time.time() - seconds
        os.utime(self.store.directory(token), (then_s, then_s))


def holder_of(token: str) -> Holder:
    return Holder(resource=RESOURCE, ids=frozenset({"tile-0"}), container="main", pod_uid="uid-1", token=token)


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


async def test_a_container_with_the_cards_that_its_pod_names_is_no_stray(bed: Bed):
    tile = bed.write()
    bed.pods["uid-1"] = a_pod(GIVEN)
    bed.look(tile.token)
    assert bed.reconciliation.strays == ()
    assert bed.told == []


@pytest.mark.parametrize(
    "pod",
    [a_pod(OTHER), a_pod(), a_pod(annotations={ALLOCATED: "GPU-0,NVIDIA,much,10:;"})],
    ids=["other cards", "no cards", "cannot be read"],
)
async def test_a_container_with_cards_that_its_pod_does_not_name_is_told_once(bed: Bed, pod: Pod):
    tile = bed.write()
    bed.pods["uid-1"] = pod
    bed.look(tile.token)
    bed.look(tile.token)
    assert bed.reconciliation.strays == (tile,)
    (told,) = bed.told
    assert (told.about.kind, told.about.namespace, told.about.name, told.about.uid) == (
        "Pod",
        "default",
        "train-0",
        "uid-1",
    )
    assert told.reason == "StrayContainer"
    assert told.sentence.startswith("container main runs with GPU-0, which the pod's annotations do not name")


async def test_nothing_is_taken_from_a_stray(bed: Bed):
    tile = bed.write()
    bed.pods["uid-1"] = a_pod(OTHER)
    bed.look()
    assert list(bed.store) == [tile]


async def test_a_stray_that_was_put_right_and_strays_again_is_told_again(bed: Bed):
    tile = bed.write()
    for given in (OTHER, GIVEN, OTHER):
        bed.pods["uid-1"] = a_pod(given)
        bed.look(tile.token)
    assert len(bed.told) == 2


async def test_the_tile_of_a_pod_that_is_over_is_removed_and_forgotten(bed: Bed):
    tile = bed.write()
    bed.look()
    assert bed.store.tokens() == set()
    assert bed.forgotten == {tile.token}


async def test_the_tile_of_a_pod_that_lives_by_anybodys_word_is_kept(bed: Bed):
    known, running, held = bed.write("known"), bed.write("running"), bed.write("held")
    bed.pods["known"] = a_pod(GIVEN, uid="known")
    bed.alive.add("running")
    bed.look(held.token)
    assert bed.store.tokens() == {known.token, running.token, held.token}


async def test_a_tile_for_which_no_container_came_is_kept_while_it_is_young(bed: Bed):
    young, old = bed.store.new_token(), bed.store.new_token()
    bed.age(young, YOUNG_S - 60)
    bed.age(old, YOUNG_S + 60)
    bed.look()
    assert bed.store.tokens() == {young}
    assert bed.forgotten == {old}


async def test_a_tile_that_the_kubelet_has_written_down_is_kept_however_old(bed: Bed):
    token = bed.store.new_token()
    bed.age(token, 100 * YOUNG_S)
    bed.look(token)
    assert bed.store.tokens() == {token}


async def test_without_a_checkpoint_nothing_is_removed(bed: Bed):
    bed.write()
    token = bed.store.new_token()
    bed.age(token, 100 * YOUNG_S)
    before = bed.store.tokens()
    bed.reconciliation.look(None)
    assert bed.store.tokens() == before


async def test_while_the_kubelet_is_away_nothing_is_removed(bed: Bed):
    tile = bed.write()
    bed.is_away = True
    running = asyncio.ensure_future(bed.reconciliation.run())
    try:
        await bed.clock.until_asleep()
        bed.clock.advance(EVERY_S)
        await bed.clock.until_asleep()
        assert list(bed.store) == [tile]
        bed.is_away = False
        bed.clock.advance(EVERY_S)
        await bed.clock.until_asleep()
        assert list(bed.store) == []
    finally:
        running.cancel()
