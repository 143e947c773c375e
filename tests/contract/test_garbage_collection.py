"""What has an owner goes with its owner, before it or after it, or is left alone."""

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.objects import config_map, owned_by
from tests.contract.waiting import eventually

pytestmark = pytest.mark.contract(area="Garbage collection", needed_by="operators, MPIJob")


@pytest.fixture
def owner(config_maps):
    return config_maps.create(config_map("owner"))


@pytest.fixture
def owned(config_maps, owner):
    return config_maps.create(config_map("owned", ownerReferences=owned_by(owner, blocks=True)))


@pytest.mark.usefixtures("owned")
@pytest.mark.contract(promise="By default what is owned is deleted after its owner")
def test_what_is_owned_follows_its_owner(config_maps):
    config_maps.delete("owner", {"propagationPolicy": "Background"})
    assert not config_maps.exists("owner")
    eventually(lambda: not config_maps.exists("owned"))


@pytest.mark.usefixtures("owned")
@pytest.mark.contract(promise="Foreground: the owner waits, with a finalizer, until what it owns is gone")
def test_an_owner_deleted_in_the_foreground_waits_for_what_it_owns(config_maps):
    config_maps.patch("owned", MERGE_PATCH, {"metadata": {"finalizers": ["contract.example/hold"]}})
    going = config_maps.delete("owner", {"propagationPolicy": "Foreground"})
    assert going["metadata"]["finalizers"] == ["foregroundDeletion"]
    eventually(lambda: "deletionTimestamp" in config_maps.get("owned")["metadata"])
    assert config_maps.exists("owner")
    config_maps.patch("owned", MERGE_PATCH, {"metadata": {"finalizers": None}})
    eventually(lambda: not config_maps.exists("owner"))


@pytest.mark.usefixtures("owned")
@pytest.mark.contract(promise="Orphan: what was owned stays and loses its owner reference", needed_by="kubectl")
def test_an_orphan_stays(config_maps):
    config_maps.delete("owner", {"propagationPolicy": "Orphan"})
    eventually(lambda: not config_maps.exists("owner"))
    assert "ownerReferences" not in config_maps.get("owned")["metadata"]


@pytest.mark.contract(promise="Something whose owner never existed is collected; a uid counts, not a name")
def test_an_owner_of_the_same_name_and_another_uid_does_not_count(config_maps, owner):
    stranger = owned_by(owner)
    stranger[0]["uid"] = "00000000-0000-4000-8000-000000000000"
    config_maps.create(config_map("owned", ownerReferences=stranger))
    eventually(lambda: not config_maps.exists("owned"))
    assert config_maps.exists("owner")


@pytest.mark.contract(promise="Something with two owners stays as long as one of them")
def test_one_remaining_owner_is_enough(config_maps, owner):
    other = config_maps.create(config_map("other"))
    both = owned_by(owner) + owned_by(other)
    config_maps.create(config_map("owned", ownerReferences=both))
    config_maps.delete("owner")
    kept = eventually(lambda: len(config_maps.get("owned")["metadata"]["ownerReferences"]) == 1)
    assert kept
    config_maps.delete("other")
    eventually(lambda: not config_maps.exists("owned"))
