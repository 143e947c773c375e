"""Where a node's cards come from."""

from pathlib import Path

import pytest

from tessera.errors import InvalidInventory
from tessera.model.allocations import CardShare
from tessera.model.catalogue import Catalogue
from tessera.model.requests import PodRef
from tessera.vendors.backends import CardSources, find_cards
from tessera.vendors.loading import load_catalogue
from tessera.vendors.rendering import AllocationRequest

CATALOGUE = load_catalogue()


def found(sources: CardSources) -> dict[str, int]:
    return {vendor: len(backend.read().devices) for vendor, backend in sources.backends.items()}


def test_without_a_description_the_cards_are_those_of_the_machine():
    sources = find_cards("n1", CATALOGUE)
    assert list(sources.backends) == list(sources.managers) == ["NVIDIA"]
    assert sources.watch is not None


def test_a_catalogue_without_nvidia_finds_nothing_on_a_machine():
    others = Catalogue(vendor for vendor in CATALOGUE if vendor.name != "NVIDIA")
    assert find_cards("n1", others).backends == {}


def test_a_description_has_a_backend_and_a_manager_for_each_of_its_vendors():
    sources = find_cards("n1", CATALOGUE, plan="2xT4,3xMI300X,1xT4")
    assert found(sources) == {"AMD": 3, "NVIDIA": 3}
    assert sources.managers.keys() == sources.backends.keys()
    assert sources.watch is None


def test_a_file_is_read_anew_each_time(tmp_path: Path):
    plan = tmp_path / "cards.toml"
    plan.write_text('[[cards]]\nmodel = "T4"\ncount = 2\n')
    (backend,) = find_cards("n1", CATALOGUE, plan_file=plan).backends.values()
    assert [device.healthy for device in backend.read().devices] == [True, True]
    plan.write_text('[[cards]]\nmodel = "T4"\ncount = 2\nunhealthy = [1]\n')
    assert [device.healthy for device in backend.read().devices] == [True, False]
    plan.write_text("[[cards")
    with pytest.raises(InvalidInventory, match=r"cards\.toml: is not TOML"):
        backend.read()


def test_simulated_cards_have_no_device_files_that_a_container_could_fail_on():
    (manager,) = find_cards("n1", CATALOGUE, plan="1xAscend910B3").managers.values()
    (card,) = manager.discover()
    share = CardShare(uuid=card.uuid, vendor=card.vendor, memory_mib=card.memory_mib, cores_percent=100)
    edits = manager.allocate(AllocationRequest(pod=PodRef("default", "p", "uid-1"), container="main", shares=(share,)))
    assert edits.device_paths == ()
    assert edits.environment == {"ASCEND_VISIBLE_DEVICES": "0"}


def test_whether_the_host_has_a_file_is_asked_of_the_host():
    asked: list[str] = []
    (manager,) = find_cards(
        "n1", CATALOGUE, plan="1xT4", exists=lambda path: bool(asked.append(path))
    ).managers.values()
    (card,) = manager.discover()
    share = CardShare(uuid=card.uuid, vendor=card.vendor, memory_mib=1, cores_percent=1)
    edits = manager.allocate(AllocationRequest(pod=PodRef("default", "p", "uid-1"), container="main", shares=(share,)))
    assert "/usr/local/vgpu/libvgpu.so" in asked
    assert not any(mount.read_only for mount in edits.mounts)
