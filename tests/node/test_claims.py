"""Claims on a real kubelet: every container of the pod sees the claimed cards and no others."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tessera.model.nodes import read_node
from tests.node.conftest import CARDS, WAIT, GpuNode, a_container, a_pod
from tests.node.programs import SEE, a_program, load_programs, said_by
from tests.node.seeing import CATALOGUE, seen_cards, seen_limits
from tests.scheduler.claims import a_claim

pytestmark = pytest.mark.timeout(300)
MARKER = "gpu.scheduling/claim"
CARD_MIB, MIB = 81_920, 2**20
LATE = {"fieldRef": {"fieldPath": "metadata.annotations['gpu.scheduling/visible-devices']"}}


@pytest.fixture(scope="module", autouse=True)
def _image(gpu_node_of_package: GpuNode) -> Iterator[None]:
    load_programs(gpu_node_of_package)
    yield
    gpu_node_of_package.cluster.kubectl("delete", "gpuclaims", "--all")


def marked(container: dict[str, Any], limits: dict[str, str] | None = None, **visible: Any) -> dict[str, Any]:
    """As the webhook lets it in. `visible` is what stands beside the name of CUDA's variable."""
    env = {"name": "CUDA_VISIBLE_DEVICES", **(visible or {"valueFrom": LATE})}
    return container | {"resources": {"limits": {MARKER: "1", **(limits or {})}}, "env": [env]}


def claim_cards(node: GpuNode, name: str, *ids: int, exclusivity: str = "Exclusive") -> None:
    claim = a_claim(name, len(ids), policy="preferIds", preferIds=list(ids), exclusivity=exclusivity)
    node.cluster.kubectl("apply", "-f", "-", input=json.dumps(claim))


def a_claimant(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    pod = a_pod(name, *containers, **spec)
    pod["metadata"]["annotations"] = {MARKER: name}
    return pod


def uuids(node: GpuNode, *ids: int) -> list[str]:
    cards = {device.index: device.uuid for device in read_node(node.node(), CATALOGUE).node.devices}
    return [cards[one] for one in ids]


def devices_told(node: GpuNode) -> list[dict[str, Any]]:
    status = json.loads(node.cluster.kubectl("get", "gns", node.name, "-o", "json"))["status"]
    assert status["total"] == CARDS
    return status["devices"]


def users_told(node: GpuNode) -> dict[int, list[str]]:
    return {device["id"]: device["inUseBy"] for device in devices_told(node) if device["inUseBy"]}


def uid_of(node: GpuNode, name: str) -> str:
    return node.pods()[name]["metadata"]["uid"]


def assert_sees(node: GpuNode, name: str, container: str, *ids: int) -> None:
    seen, expected = said_by(node, name, container), uuids(node, *ids)
    assert [card[0] for card in seen["cuda"]] == expected
    assert seen["nvml"] == expected


def test_every_container_of_a_claim_sees_its_cards_alone(gpu_node: GpuNode):
    claim_cards(gpu_node, "late", 2, 3)
    looking = marked(a_program(SEE))
    gpu_node.create(a_claimant("late", looking, initContainers=[looking | {"name": "first"}], restartPolicy="Never"))
    for container in ("first", "main"):
        assert_sees(gpu_node, "late", container, 2, 3)


def test_a_pod_that_is_pinned_to_cards_sees_those_though_its_ids_mean_others_in_it(gpu_node: GpuNode):
    pod = a_pod("pinned", marked(a_program(SEE), value="2,3"), restartPolicy="Never")
    pod["metadata"]["annotations"] = {"gpu.scheduling/allocated": f"{gpu_node.name}:2,3"}
    gpu_node.create(pod)
    assert_sees(gpu_node, "pinned", "main", 2, 3)


def test_without_cdi_every_container_of_a_claim_sees_its_cards_alone_too(early_node: GpuNode):
    claim_cards(early_node, "early", 4, 5)
    early_node.create(a_claimant("early", marked(a_program(SEE)), restartPolicy="Never"))
    assert_sees(early_node, "early", "main", 4, 5)


def test_a_count_beside_a_claim_gives_no_further_card_and_limits_and_figures_count_once(gpu_node: GpuNode):
    claim_cards(gpu_node, "counted", 6, 7)
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000"}
    gpu_node.create(a_claimant("counted", marked(a_container(), limits), marked(a_container("free"))))
    gpu_node.wait_until_running("counted")
    pod, cards = gpu_node.pods()["counted"], uuids(gpu_node, 6, 7)
    for container, memory_mib in (("main", 2000), ("free", CARD_MIB)):
        (printed,) = gpu_node.wait_until(lambda name=container: gpu_node.runs_of(pod, name), f"told by {container}")
        assert seen_cards(printed) == cards
        assert seen_limits(printed) == [(card, memory_mib, 100) for card in cards]
    families = {family.name: family for family in text_string_to_metric_families(gpu_node.metrics())}
    told = [sample for sample in families["hami_vgpu_memory_limit_bytes"].samples if sample.labels["pod"] == "counted"]
    assert sorted(sample.value for sample in told) == [2000 * MIB] * 2 + [CARD_MIB * MIB] * 2


def test_a_shared_claim_without_figures_limits_nothing(gpu_node: GpuNode):
    claim_cards(gpu_node, "shared", 8, exclusivity="Shared")
    gpu_node.create(a_claimant("shared", marked(a_container())))
    gpu_node.wait_until_running("shared")
    (printed,) = gpu_node.wait_until(lambda: gpu_node.runs_of(gpu_node.pods()["shared"], "main"), "told by shared")
    assert seen_limits(printed) == [(*uuids(gpu_node, 8), 0, 0)]
    assert "CUDA_DEVICE_MEMORY_LIMIT" not in printed


def test_the_status_of_the_node_names_the_pods_on_each_card_while_they_are_there(gpu_node: GpuNode):
    claim_cards(gpu_node, "holding", 10, 11)
    gpu_node.create(a_claimant("holding", marked(a_container())), a_pod("fraction", a_container(then=WAIT)))
    gpu_node.wait_until_running("holding", "fraction")
    (share,) = gpu_node.pods()["fraction"]["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"].split(":")[:1]
    fraction = uuids(gpu_node, *range(CARDS)).index(share.partition(",")[0])
    holding = [uid_of(gpu_node, "holding")]
    expected = {10: holding, 11: holding, fraction: [uid_of(gpu_node, "fraction")]}
    gpu_node.wait_until(lambda: users_told(gpu_node) == expected, "told who uses which card", timeout_s=15)
    gpu_node.delete("holding", "fraction")
    gpu_node.wait_until(lambda: not users_told(gpu_node), "told that nobody does", timeout_s=30)


def test_the_status_of_the_node_tells_health_and_is_written_again_when_it_is_deleted(gpu_node: GpuNode):
    first, last = devices_told(gpu_node)[0], devices_told(gpu_node)[-1]
    assert (first["health"], first["bandwidthGBps"], first["island"]) == ("Healthy", 600, "nvlink-group-0")
    assert last["island"] == "nvlink-group-1"
    gpu_node.set_cards(unhealthy=(0,))
    gpu_node.wait_until(lambda: devices_told(gpu_node)[0]["health"] == "Unhealthy", "told as unhealthy")
    gpu_node.cluster.kubectl("delete", "gns", gpu_node.name)
    gpu_node.wait_until(lambda: is_written(gpu_node), "written again", timeout_s=15)
    gpu_node.set_cards()
    gpu_node.wait_until(lambda: devices_told(gpu_node)[0]["health"] == "Healthy", "told as healthy again")


def is_written(node: GpuNode) -> bool:
    statuses = json.loads(node.cluster.kubectl("get", "gns", "-o", "json"))["items"]
    return any("status" in status for status in statuses)


def test_a_member_of_a_gang_that_wants_no_card_runs_though_no_node_has_what_it_asks_for(gpu_node: GpuNode):
    asking = a_container() | {"resources": {"limits": {"gpu.scheduling/gang": "1"}}}
    pod = a_pod("launcher", asking)
    pod["metadata"]["annotations"] = {"gpu.scheduling/gang": "crew", "gpu.scheduling/gang-size": "1"}
    gpu_node.create(pod)
    gpu_node.wait_until_running("launcher")
