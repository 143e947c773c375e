"""A running container that is given more or less of its cards: the limits file says so, and nothing else changes."""

from pathlib import Path

import pytest

from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.node.pods import Pod
from tessera.node.resizing import Resizer, resized
from tessera.node.tile_store import TileStore
from tessera.vendors.backends import find_cards
from tessera.vendors.rendering import ContainerEdits
from tests.builders import a_share
from tests.unit.node.making import CATALOGUE, NODE, a_container, a_pod, a_preparer, a_tile

SOURCES = find_cards(NODE, CATALOGUE, plan="2xT4", exists=lambda _: False)
T4, OTHER = (device.uuid for device in SOURCES.managers["NVIDIA"].discover())


class Bed:
    def __init__(self, root: Path) -> None:
        self.store = TileStore(root / "state", root / "cdi")
        token = self.store.new_token()
        self.store.write(a_tile(token, a_share(T4, 1000, 10)), ContainerEdits())
        self.resizer = Resizer(CATALOGUE, a_preparer(root, SOURCES, self.store), self.store)
        self.limits = self.store.directory(token) / "limits"

    def give(self, pod: Pod | None) -> str:
        """What the limits say after the pod has become this one."""
        self.resizer.pod_changed(Change(ObjectKey("default", "train-0"), None, pod))
        return self.limits.read_text().splitlines()[-1]


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


def a_pod_with(memory_mib: int, uuid: str = T4) -> Pod:
    return a_pod((a_share(uuid, memory_mib, 10),), containers=(a_container(gpu=1, gpumem=1000, gpucores=10),))


def test_a_container_that_is_given_more_finds_it_in_its_limits_and_keeps_it_after_a_restart(bed: Bed, tmp_path: Path):
    assert bed.give(a_pod_with(3000)) == f"card {T4} memory_mib 3000 cores_percent 10"
    (kept,) = TileStore(tmp_path / "state", tmp_path / "cdi")
    assert kept.shares[0].memory_mib == 3000


def test_the_same_again_is_not_written(bed: Bed):
    before = bed.limits.stat().st_ino
    bed.give(a_pod_with(1000))
    assert bed.limits.stat().st_ino == before


def test_other_cards_are_not_given_to_a_container_that_runs(bed: Bed):
    assert bed.give(a_pod_with(3000, uuid=OTHER)) == f"card {T4} memory_mib 1000 cores_percent 10"
    assert resized(a_tile("aa", a_share(T4, 1)), (a_share(T4, 2), a_share(OTHER, 2))) is None


def test_a_pod_that_is_gone_or_lost_its_annotations_changes_nothing(bed: Bed):
    assert bed.give(None) == bed.give(a_pod()) == f"card {T4} memory_mib 1000 cores_percent 10"
