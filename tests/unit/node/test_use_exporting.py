"""What Prometheus reads of containers, parsed as Prometheus would: what they use in truth."""

import os
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tessera.node.run_directory import RunDirectory
from tessera.node.stray_processes import StrayProcess
from tessera.node.use_exporting import UseCollector
from tessera.node.using import ContainerUses
from tests.builders import a_share
from tests.unit.kube.clocks import HastyClock
from tests.unit.node.making import NODE, a_tile
from tests.unit.node.making_regions import MIB, live, write_region

pytestmark = pytest.mark.asyncio
STRAYS = (
    StrayProcess(uuid="GPU-9", pid=1, memory_bytes=3 * MIB),
    StrayProcess(uuid="GPU-9", pid=2, memory_bytes=4 * MIB),
)
LABELS = {"namespace": "default", "pod": "train-0", "container": "main", "vdevice_index": "0", "device_uuid": "GPU-0"}


class Bed:
    def __init__(self, root: Path) -> None:
        self.clock = HastyClock()
        self.tile = a_tile("aa", a_share("GPU-0", 1000, 25))
        run = RunDirectory(root)
        self.region = run.region(self.tile.pod.uid, self.tile.container)
        self.uses = ContainerUses(run, lambda: (self.tile,), clock=self.clock)

    def read(self, **options: Any) -> dict[str, Metric]:
        registry = CollectorRegistry()
        registry.register(UseCollector(NODE, self.uses, lambda: STRAYS, clock=self.clock, **options))
        return {family.name: family for family in text_string_to_metric_families(generate_latest(registry).decode())}


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


def only(family: Metric) -> tuple[dict[str, str], float]:
    (sample,) = [sample for sample in family.samples if not sample.name.endswith("_created")]
    return {key: value for key, value in sample.labels.items() if key != "zone"}, sample.value


async def test_memory_time_and_refusals_of_a_container_are_told(bed: Bed):
    write_region(bed.region, (7, 700, 500 * MIB), context_bytes=300 * MIB, gpu_ns=10**9)
    descriptor = live(bed.region, 0)
    await bed.uses.look()
    await bed.clock.sleep(10.0)
    write_region(
        bed.region,
        (7, 700, 500 * MIB),
        context_bytes=300 * MIB,
        limit_bytes=1000 * MIB,
        share_percent=25,
        gpu_ns=3 * 10**9,
        throttled_ns=5 * 10**8,
        refusals=4,
    )
    await bed.uses.look()
    os.close(descriptor)
    families = bed.read()
    assert only(families["hami_vgpu_memory_used_bytes"]) == (LABELS, 500 * MIB)
    assert only(families["hami_container_device_memory_bytes"]) == (LABELS, 500 * MIB)
    assert only(families["tessera_container_memory_limit_bytes"]) == (LABELS, 1000 * MIB)
    assert only(families["hami_vgpu_memory_context_bytes"]) == (LABELS, 300 * MIB)
    assert only(families["hami_container_device_utilization_ratio"]) == (LABELS, pytest.approx(20))
    assert only(families["tessera_container_gpu_seconds"]) == (LABELS, 3.0)
    assert only(families["tessera_container_throttled_seconds"]) == (LABELS, 0.5)
    assert only(families["tessera_container_refusals"]) == (LABELS, 4.0)
    assert only(families["tessera_container_gpu_limit_percent"]) == (LABELS, 25.0)


async def test_the_old_names_have_their_labels_and_can_be_left_out(bed: Bed):
    write_region(bed.region, (7, 700, 500 * MIB), context_bytes=300 * MIB)
    descriptor = live(bed.region, 0)
    await bed.uses.look()
    os.close(descriptor)
    labels, value = only(bed.read()["Device_memory_desc_of_container"])
    parts = {"context": str(300 * MIB), "module": "0", "data": str(200 * MIB), "offset": "0"}
    assert (value, labels.items() >= (parts | {"podname": "train-0", "ctrname": "main"}).items()) == (500 * MIB, True)
    assert not [name for name in bed.read(legacy=False) if name[0].isupper() or name.startswith("vGPU")]


async def test_how_long_ago_a_card_was_used_is_told_of_one_that_was(bed: Bed):
    write_region(bed.region)
    await bed.uses.look()
    assert bed.read()["hami_container_last_kernel_elapsed_seconds"].samples == []
    await bed.clock.sleep(100.0)
    used_ms = round((bed.clock.monotonic_s() - 30) * 1000)
    write_region(bed.region, launched_ms=used_ms)
    await bed.uses.look()
    assert only(bed.read()["hami_container_last_kernel_elapsed_seconds"])[1] == pytest.approx(30, abs=0.01)


async def test_a_container_that_has_used_no_card_is_not_shown(bed: Bed):
    await bed.uses.look()
    assert bed.read()["hami_vgpu_memory_used_bytes"].samples == []


async def test_strays_are_summed_up_by_card_and_regions_that_cannot_be_read_are_counted(bed: Bed):
    bed.region.parent.mkdir(parents=True)
    bed.region.write_bytes(b"noise")
    await bed.uses.look()
    families = bed.read()
    assert only(families["tessera_stray_memory_bytes"]) == ({"node": NODE, "device_uuid": "GPU-9"}, 7 * MIB)
    assert only(families["tessera_stray_processes"])[1] == 2
    assert only(families["tessera_unreadable_regions"]) == ({"node": NODE}, 1)
