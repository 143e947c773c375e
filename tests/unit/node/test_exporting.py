"""What Prometheus reads on a node, parsed as Prometheus would."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tessera.node.cards import Cards
from tessera.node.exporting import NodeCollector
from tessera.node.health import Health
from tessera.node.tiles import Tile
from tessera.vendors.managers import Inventory
from tessera.vendors.usage import CardUsage
from tests.builders import a_card, a_share
from tests.unit.node.making import NODE, a_tile

pytestmark = pytest.mark.asyncio
MIB = 2**20
CARDS = Inventory((a_card("GPU-0", index=0), a_card("GPU-1", index=1, healthy=False)))


class FixedBackend:
    def read(self) -> Inventory:
        return CARDS


async def read(*tiles: Tile, usage: dict[str, CardUsage] | None = None, **options: Any) -> dict[str, Metric]:
    cards = Cards({"NVIDIA": FixedBackend()}, Health())
    await cards.look()
    registry = CollectorRegistry()
    registry.register(NodeCollector(NODE, "1.2.3", cards, lambda: tiles, lambda: usage or {}, lambda: 2, **options))
    return {family.name: family for family in text_string_to_metric_families(generate_latest(registry).decode())}


def only(family: Metric) -> tuple[dict[str, str], float]:
    (sample,) = family.samples
    return sample.labels, sample.value


async def test_what_a_container_may_use_is_told_by_the_new_name_and_the_old():
    families = await read(a_tile("aa", a_share("GPU-0", 1000, 10)))
    new = {"namespace": "default", "pod": "train-0", "container": "main", "vdevice_index": "0", "device_uuid": "GPU-0"}
    old = {"podnamespace": "default", "podname": "train-0", "ctrname": "main", "vdeviceid": "0", "deviceuuid": "GPU-0"}
    assert only(families["hami_vgpu_memory_limit_bytes"]) == (new | {"zone": "vGPU"}, 1000 * MIB)
    assert only(families["vGPU_device_memory_limit_in_bytes"]) == (old | {"zone": "vGPU"}, 1000 * MIB)


async def test_a_container_that_has_its_cards_by_a_claim_and_by_count_is_told_once():
    share = a_share("GPU-0", 1000, 10)
    families = await read(a_tile("aa", share), a_tile("bb", share, resource="gpu.scheduling/claim"))
    assert only(families["hami_vgpu_memory_limit_bytes"])[1] == 1000 * MIB


async def test_no_limit_is_not_told_as_one_of_no_bytes():
    families = await read(a_tile("aa", a_share("GPU-0", 0, 0)))
    assert families["hami_vgpu_memory_limit_bytes"].samples == []


async def test_what_a_card_does_is_told_by_the_new_name_and_the_old():
    families = await read(usage={"GPU-0": CardUsage(memory_used_mib=512, busy_percent=37)})
    new = {"node": NODE, "device_index": "0", "device_uuid": "GPU-0", "device_type": "NVIDIA A100", "zone": "vGPU"}
    assert only(families["hami_host_gpu_memory_used_bytes"]) == (new, 512 * MIB)
    assert only(families["hami_host_gpu_utilization_ratio"]) == (new, 37)
    assert only(families["HostGPUMemoryUsage"])[1] == 512 * MIB
    labels, busy = only(families["HostCoreUtilization"])
    assert (labels["nodeid"], labels["deviceidx"], labels["deviceuuid"], busy) == (NODE, "0", "GPU-0", 37)


async def test_what_is_not_known_is_left_out_and_not_zero():
    families = await read(usage={"GPU-0": CardUsage(memory_used_mib=512)})
    assert families["hami_host_gpu_utilization_ratio"].samples == []
    assert [sample.labels["device_uuid"] for sample in families["hami_host_gpu_memory_used_bytes"].samples] == ["GPU-0"]


async def test_health_strays_and_the_release_are_told():
    families = await read()
    health = {sample.labels["device_uuid"]: sample.value for sample in families["tessera_card_healthy"].samples}
    assert health == {"GPU-0": 1.0, "GPU-1": 0.0}
    assert only(families["tessera_stray_containers"]) == ({"node": NODE, "zone": "vGPU"}, 2.0)
    assert only(families["hami_build_info"]) == ({"version": "1.2.3", "zone": "vGPU"}, 1.0)


async def test_the_old_names_can_be_left_out():
    families = await read(a_tile(), legacy=False)
    assert "hami_vgpu_memory_limit_bytes" in families
    assert not [name for name in families if name[0].isupper() or name.startswith("vGPU")]


async def test_two_shares_of_one_card_are_two_samples():
    families = await read(a_tile("aa", a_share("GPU-0", 1000), a_share("GPU-0", 2000)))
    samples = families["hami_vgpu_memory_limit_bytes"].samples
    assert [(sample.labels["vdevice_index"], sample.value) for sample in samples] == [
        ("0", 1000 * MIB),
        ("1", 2000 * MIB),
    ]
