"""Who is given the simulated driver, and how it is found."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tessera.model.allocations import CardShare
from tessera.model.requests import PodRef
from tessera.vendors.backends import CardSources, find_cards
from tessera.vendors.loading import load_catalogue
from tessera.vendors.rendering import AllocationRequest, ContainerEdits
from tessera.vendors.simulated_driver import (
    LIBRARIES,
    SimulatedDriver,
    driver_for_containers,
    driver_for_processes,
    find_libraries,
)

CATALOGUE = load_catalogue()
BUILT = Path("/built")


@pytest.fixture
def driver(tmp_path: Path) -> SimulatedDriver:
    return driver_for_containers(BUILT, tmp_path / "sim")


def given(sources: CardSources, vendor: str) -> ContainerEdits:
    """What a container with the first card of the vendor is given."""
    manager = sources.managers[vendor]
    card = manager.discover()[0]
    share = CardShare(uuid=card.uuid, vendor=vendor, memory_mib=1, cores_percent=1)
    return manager.allocate(AllocationRequest(pod=PodRef("default", "p", "uid-1"), container="main", shares=(share,)))


def test_containers_with_simulated_cards_of_nvidia_are_given_the_driver_and_others_are_not(driver: SimulatedDriver):
    sources = find_cards("n1", CATALOGUE, plan="1xT4,1xMI300X", exists=lambda _: False, driver=driver)
    edits = given(sources, "NVIDIA")
    assert edits.environment["TESSERA_SIM"] == "/var/lib/tessera/sim"
    assert "NVIDIA_VISIBLE_DEVICES" in edits.environment
    assert set(driver.edits.mounts) < set(edits.mounts)
    assert "TESSERA_SIM" not in given(sources, "AMD").environment


def test_real_cards_have_a_driver_of_their_own(driver: SimulatedDriver):
    assert find_cards("n1", CATALOGUE, driver=driver).driver is None


def test_a_container_finds_the_libraries_without_a_variable_and_writes_to_the_shared_memory(driver: SimulatedDriver):
    mounts = {mount.container_path: mount for mount in driver.edits.mounts}
    assert mounts["/usr/lib64/libcuda.so.1"].host_path == "/built/libcuda.so.1"
    assert mounts["/usr/lib64/libnvidia-ml.so.1"].read_only
    assert mounts["/var/lib/tessera/sim"].host_path == str(driver.cards)
    assert not mounts["/var/lib/tessera/sim"].read_only
    assert driver.edits.environment.keys() == {"TESSERA_SIM"}


def test_a_process_of_this_machine_finds_the_libraries_where_they_are(tmp_path: Path):
    edits = driver_for_processes(BUILT, tmp_path).edits
    assert edits.environment == {"TESSERA_SIM": str(tmp_path), "LD_LIBRARY_PATH": "/built"}
    assert edits.mounts == ()


def test_where_the_libraries_are_not_built_one_line_says_so(tmp_path: Path):
    with capture_logs() as lines:
        assert find_libraries(tmp_path) is None
    assert [line["expected"] for line in lines] == [str(tmp_path)]
    for name in LIBRARIES:
        (tmp_path / name).touch()
    assert find_libraries(tmp_path) == tmp_path


def test_containers_of_any_user_share_the_memory_of_the_cards(driver: SimulatedDriver):
    cards = find_cards("n1", CATALOGUE, plan="2xT4,1xMI300X").managers["NVIDIA"].discover()
    driver.know(cards)
    memory = driver.cards / "memory"
    assert memory.stat().st_mode & 0o777 == 0o666
    memory.write_bytes(b"taken")
    driver.know(cards[:1])
    assert memory.read_bytes() == b"taken", "what is held stays held"
    assert (driver.cards / "cards").read_text().startswith(f"{cards[0].uuid}\tTesla T4\t15360\t")


def test_a_disk_that_takes_nothing_is_told_and_ends_nobody(driver: SimulatedDriver):
    driver.cards.write_text("in the way")
    with capture_logs() as lines:
        driver.know(())
    assert [line["log_level"] for line in lines] == ["warning"]
