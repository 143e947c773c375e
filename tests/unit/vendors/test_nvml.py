"""NVIDIA discovery over a stand-in for NVML: what is read, and how trouble is told."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tessera.errors import DiscoveryFailed
from tessera.model.devices import Link, MigPlacement
from tessera.vendors.nvml import NvmlBackend
from tests.unit.vendors.fake_nvml import FakeNvml


def read(nvml: Any, pci_devices: Path = Path("/nonexistent"), **options: Any):
    return NvmlBackend(nvml=nvml, pci_devices=pci_devices, **options).read()


def test_a_card_is_read_with_its_identity_memory_and_slots(capsys):
    nvml = FakeNvml()
    first = read(nvml, slots=7).devices[0]
    assert (first.uuid, first.index, first.vendor, first.slots) == ("GPU-0", 0, "NVIDIA", 7)
    assert (first.model, first.memory_mib, first.cores_percent) == ("NVIDIA A100-SXM4-40GB", 40_960, 100)
    assert nvml.opened == nvml.closed == 1
    assert capsys.readouterr() == ("", "")


def test_a_model_is_named_as_hami_names_it_whether_text_or_bytes():
    models = [device.model for device in read(FakeNvml(names=(b"Tesla T4", "NVIDIA L4"))).devices]
    assert models == ["NVIDIA-Tesla T4", "NVIDIA L4"]


def test_numa_comes_from_sysfs_and_none_counts_as_the_first(tmp_path):
    for bus_id, numa in (("0000:00:00.0", "0\n"), ("0000:01:00.0", "1\n"), ("0000:02:00.0", "-1\n")):
        (tmp_path / bus_id).mkdir()
        (tmp_path / bus_id / "numa_node").write_text(numa)
    assert [device.numa for device in read(FakeNvml(), tmp_path).devices] == [0, 1, 0, 0]


def test_links_sum_the_distance_and_a_hundred_for_each_nvlink():
    assert read(FakeNvml()).links == (
        Link("GPU-0", "GPU-1", 440),
        Link("GPU-0", "GPU-2", 10),
        Link("GPU-0", "GPU-3", 10),
        Link("GPU-1", "GPU-2", 10),
        Link("GPU-1", "GPU-3", 10),
        Link("GPU-2", "GPU-3", 440),
    )


def test_cards_joined_by_nvlink_are_one_island():
    assert [device.island for device in read(FakeNvml()).devices] == ["nvlink-0", "nvlink-0", "nvlink-1", "nvlink-1"]


def test_a_switch_joins_all_cards():
    inventory = read(FakeNvml(switch=True))
    assert {device.island for device in inventory.devices} == {"nvlink-0"}
    assert {link.score for link in inventory.links} == {440, 410}


COMMON, OF_EACH = FakeNvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, FakeNvml.NVML_FI_DEV_NVLINK_GET_SPEED


@pytest.mark.parametrize(
    ("speeds", "version", "gbps"),
    [
        ({COMMON: 25_781}, 0, 200),
        ({COMMON: 0, OF_EACH: 26_562}, 0, 200),
        ({OF_EACH: 53_125}, 0, 400),
        ({COMMON: 19_531}, 0, 160),
        ({COMMON: 10_000}, 0, 80),
        ({}, 7, 400),
        ({}, 4, 200),
        ({}, 0, 0),
    ],
    ids=["one speed for all", "one for each", "a fast one", "a slow one", "an odd one", "new", "old", "not told"],
)
def test_the_bandwidth_of_a_card_is_that_of_its_four_links_both_ways_as_data_sheets_count(speeds, version, gbps):
    nvml = FakeNvml()
    nvml.link_speeds, nvml.link_version = speeds, version
    assert {device.bandwidth_gbps for device in read(nvml).devices} == {gbps}


def test_a_card_whose_links_lead_to_no_other_card_has_no_bandwidth_to_its_island():
    nvml = FakeNvml(names=("NVIDIA H200",), switch=True)
    nvml.link_version = 6
    assert read(nvml).devices[0].bandwidth_gbps == 0


def test_a_single_card_is_on_no_island_and_has_no_links():
    inventory = read(FakeNvml(names=("NVIDIA H200",), switch=True))
    assert inventory.devices[0].island == ""
    assert inventory.links == ()


def test_mig_tells_its_profiles_its_mode_and_its_absence():
    devices = read(FakeNvml()).devices
    assert [device.mode for device in devices] == ["hami-core", "hami-core", "mig", "hami-core"]
    assert [(profile.name, profile.memory_mib, profile.cores_percent) for profile in devices[0].mig_profiles] == [
        ("1g.5gb", 4864, 14),
        ("7g.40gb", 40192, 100),
    ]
    assert devices[0].mig_profiles[0].placements == (MigPlacement(0, 1), MigPlacement(1, 1))
    assert devices[0].mig_profiles[1].placements == ()
    assert devices[3].mig_profiles == ()


def test_a_machine_without_a_driver_gets_one_sentence():
    nvml = FakeNvml()
    nvml.init_error = "NVML Shared Library Not Found"
    with pytest.raises(
        DiscoveryFailed, match=r"^NVML did not start \(NVML Shared Library Not Found\), expected an NVIDIA"
    ):
        read(nvml)


def test_a_machine_without_the_package_gets_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(DiscoveryFailed, match=r"^the Python package nvidia-ml-py is missing"):
        NvmlBackend().read()


def test_a_lost_card_is_told_and_the_others_are_found():
    nvml = FakeNvml()
    nvml.lost_cards = (2,)
    inventory = read(nvml)
    assert [device.uuid for device in inventory.devices] == ["GPU-0", "GPU-1", "GPU-3"]
    assert inventory.complaints == ("card 2 did not answer (GPU is lost), expected its identity; see nvidia-smi",)
    assert len(inventory.links) == 3


def test_a_machine_whose_cards_are_all_lost_gets_one_sentence_and_nvml_is_closed():
    nvml = FakeNvml()
    nvml.lost_cards = (0, 1, 2, 3)
    with pytest.raises(DiscoveryFailed, match=r"^card 0 did not answer \(GPU is lost\)"):
        read(nvml)
    assert nvml.closed == 1


def test_a_card_in_mig_mode_has_as_many_slots_as_its_smallest_profile_has_instances():
    assert [device.slots for device in read(FakeNvml(), slots=10).devices] == [10, 10, 7, 10]


def test_a_driver_that_stops_answering_gets_one_sentence():
    with pytest.raises(DiscoveryFailed, match=r"^NVML did not answer \(Unknown Error\), expected the list of cards"):
        read(FakeNvml(names=()))


def test_memory_that_nvml_cannot_tell_is_assumed_or_asked_for():
    nvml = FakeNvml()
    nvml.memory_total = 0
    assert read(nvml, assumed_memory_mib=120_000).devices[0].memory_mib == 120_000
    with pytest.raises(DiscoveryFailed, match=r"^card 0 reports no memory"):
        read(nvml)


def test_a_card_that_the_driver_wants_reset_is_found_and_unhealthy():
    nvml = FakeNvml()
    nvml.recovery_actions[1] = 1
    inventory = NvmlBackend(nvml=nvml).read()
    assert [device.healthy for device in inventory.devices] == [True, False, True, True]
