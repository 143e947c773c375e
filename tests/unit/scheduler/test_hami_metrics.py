"""HAMi's metrics, as a Prometheus reads them, of a world that is known."""

import asyncio

import msgspec
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.scheduler import hami_metrics
from tessera.scheduler.hami_metrics import HamiPage, escaped
from tessera.scheduler.world import World
from tests.unit.scheduler.cluster import a_pod, a_world, see

pytestmark = pytest.mark.asyncio
A100, MIB = 81_920, 2**20
Labels = dict[str, str]
CARD = {"node", "device_uuid", "device_index", "device_type", "zone"}
OLD_CARD = {"nodeid", "deviceuuid", "deviceidx", "devicetype", "zone"}


async def families(world: World, *pods: Pod, old_names: bool = True) -> dict[str, Metric]:
    page = HamiPage(world, pods, lambda: ["default"], old_names=old_names)
    text = "".join([part async for part in page.text()])
    return {family.name: family for family in text_string_to_metric_families(text)}


def a_world_with_one_pod() -> World:
    """Two cards on a node, the first of which a pod has 20,480 MiB and 30 % of."""
    world = a_world(a="2xA100-SXM4-80GB")
    pod = a_pod("train", memory=20_480, nodeName="a")
    uuid = world.ledger.fleet.uuids[0][0]
    pod["metadata"]["annotations"] = {"hami.io/vgpu-devices-allocated": f"{uuid},NVIDIA,20480,30:;"}
    see(world, pod)
    return world


def value(family: Metric, **labels: str) -> float:
    (sample,) = [sample for sample in family.samples if labels.items() <= sample.labels.items()]
    return sample.value


async def test_cards_are_shown_with_what_is_promised_of_them():
    found = await families(a_world_with_one_pod())
    expected = {
        "hami_gpu_memory_limit_bytes": (A100 * MIB, A100 * MIB),
        "hami_gpu_core_limit_ratio": (100, 100),
        "hami_gpu_memory_allocated_bytes": (20_480 * MIB, 0),
        "hami_gpu_shared_count": (1, 0),
        "hami_gpu_core_allocated_ratio": (30, 0),
        "hami_node_gpu_overview": (20_480 * MIB, 0),
        "hami_node_gpu_memory_allocated_ratio": (0.25, 0),
    }
    for name, figures in expected.items():
        shown = tuple(value(found[name], node="a", device_index=str(index)) for index in (0, 1))
        assert shown == figures, name


async def test_labels_are_those_that_dashboards_ask_for():
    found = await families(a_world_with_one_pod())
    labels = {name: set(family.samples[0].labels) for name, family in found.items() if family.samples}
    assert labels["hami_gpu_shared_count"] == CARD
    assert labels["hami_gpu_memory_allocated_bytes"] == CARD | {"device_cores"}
    assert labels["hami_node_gpu_overview"] == CARD | {"device_cores", "device_memory_limit"}
    assert labels["GPUDeviceMemoryLimit"] == OLD_CARD
    assert labels["GPUDeviceMemoryAllocated"] == OLD_CARD | {"devicecores"}
    assert labels["nodeGPUOverview"] == OLD_CARD | {"devicecores", "devicememorylimit"}
    assert labels["nodeGPUMemoryPercentage"] == OLD_CARD - {"devicetype"}
    share = {"namespace", "node", "pod", "container_index", "device_uuid", "zone"}
    assert labels["hami_vgpu_memory_allocated_bytes"] == share
    old_share = {"podnamespace", "nodename", "podname", "containeridx", "deviceuuid", "zone"}
    assert labels["vGPUCoreAllocated"] == old_share
    assert {sample.labels["zone"] for family in found.values() for sample in family.samples} == {"vGPU"}


async def test_old_names_say_the_same_and_can_be_left_out():
    world = a_world_with_one_pod()
    found = await families(world)
    assert value(found["GPUDeviceMemoryAllocated"], nodeid="a", deviceidx="0") == 20_480 * MIB
    assert value(found["vGPUMemoryAllocated"], podname="train", containeridx="0") == 20_480 * MIB
    assert all(name.startswith("hami_") for name in await families(world, old_names=False))


async def test_a_container_is_shown_with_what_it_was_given():
    found = await families(a_world_with_one_pod())
    where = {"namespace": "default", "pod": "train", "node": "a", "container_index": "0"}
    assert value(found["hami_vgpu_memory_allocated_bytes"], **where) == 20_480 * MIB
    assert value(found["hami_vgpu_core_allocated_ratio"], **where) == 30


async def test_a_quota_is_shown_in_the_units_of_its_resource():
    world = a_world_with_one_pod()
    hard = {"limits.nvidia.com/gpumem": "40960", "limits.nvidia.com/gpucores": "200"}
    quota = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}}
    world.quota_changed(Change(ObjectKey("default", "q"), None, quota))
    found = await families(world)
    memory, cores = ({"namespace": "default", "quota_name": f"nvidia.com/{what}"} for what in ("gpumem", "gpucores"))
    assert value(found["hami_resource_quota_used"], **memory, limit="40960") == 20_480
    assert value(found["hami_resource_quota_limit"], **memory) == 40_960
    assert value(found["hami_resource_quota_used"], **cores, limit="200") == 30
    assert value(found["QuotaUsed"], quotanamespace="default", quotaName="nvidia.com/gpumem") == 20_480


async def test_a_hardware_slice_is_shown_once_it_exists():
    world = a_world_with_one_pod()
    uuid = world.ledger.fleet.uuids[0][1]
    made = {"migUUID": "MIG-1", "gpuInstanceID": 7, "computeInstanceID": 0}
    slices = [
        {"gpuUUID": uuid, "profile": "1g.10gb", "placement": {"start": 6, "size": 1}, **made},
        {"gpuUUID": uuid, "profile": "2g.20gb", "placement": {"start": 0, "size": 2}},
    ]
    pod = a_pod("sliced", nodeName="a")
    pod["metadata"]["annotations"] = {"hami.io/vgpu-mig-allocations": msgspec.json.encode(slices).decode()}
    found = await families(world, msgspec.convert(pod, Pod))
    (sample,) = found["hami_node_gpu_mig_instance_info"].samples
    assert sample.labels == {
        "zone": "vGPU",
        "node": "a",
        "device_uuid": uuid,
        "device_index": "1",
        "mig_uuid": "MIG-1",
        "profile": "1g.10gb",
        "gpu_instance_id": "7",
        "compute_instance_id": "0",
        "placement_start": "6",
        "placement_size": "1",
    }
    assert value(found["nodeGPUMigInstance"], nodeid="a", migname="1g.10gb-7") == 1


async def test_others_have_their_turn_between_two_slices(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hami_metrics, "SLICE", 2)
    monkeypatch.setattr(hami_metrics, "NODES_AT_ONCE", 1)
    turns, most = 0, 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(take_turns())
    page = HamiPage(a_world(a="4xA100-SXM4-80GB", b="4xA100-SXM4-80GB"), (), lambda: (), old_names=True)
    async for part in page.text():
        assert turns > most, "nobody else had a turn since the last part"
        most = turns
        assert part.count("\n") <= 2
    others.cancel()


async def test_what_a_node_calls_its_cards_cannot_break_the_page():
    assert escaped('a"b\\c\nd') == r"a\"b\\c\nd"
