"""What a node's agent tells the cluster, and what it lets containers do, on a real kubelet."""

import json
from typing import Any

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tessera.model.annotations import keys
from tessera.model.annotations.handshakes import HandshakeState, decode_handshake
from tessera.model.nodes import read_node
from tessera.node.inventory_service import SERVICE
from tessera.node.protocols.inventory_pb2 import Inventory, ListCardsRequest, WatchCardsRequest
from tests.node.conftest import CARDS, GpuNode, a_container, a_pod
from tests.node.seeing import CATALOGUE, assert_sees_what_it_was_given, promised

pytestmark = pytest.mark.timeout(300)
HANDSHAKE = "hami.io/node-handshake-nvidia"
STUBBORN = "trap '' TERM; while :; do sleep 1; done"


def annotations(node: GpuNode) -> dict[str, str]:
    return node.node()["metadata"]["annotations"]


def test_a_node_is_labelled_and_its_cards_are_registered_in_the_form_of_the_seed(gpu_node: GpuNode):
    document = gpu_node.node()
    assert document["metadata"]["labels"]["gpu"] == "on"
    register = document["metadata"]["annotations"]["hami.io/node-nvidia-register"]
    cards = [card.split(",") for card in register.rstrip(":").split(":")]
    assert len(cards) == CARDS
    assert {len(card) for card in cards} == {7}
    assert len(read_node(document, CATALOGUE).node.devices) == CARDS
    assert decode_handshake(annotations(gpu_node)[HANDSHAKE]).state is HandshakeState.REPORTED


def test_a_scheduler_that_asks_for_a_sign_of_life_is_answered(gpu_node: GpuNode):
    asked = "Requesting_2026-11-15 10:00:00"
    gpu_node.cluster.kubectl("annotate", "node", gpu_node.name, f"{HANDSHAKE}={asked}", "--overwrite")
    gpu_node.wait_until(lambda: annotations(gpu_node)[HANDSHAKE].startswith("Reported "), "answered")


def test_the_agent_writes_nothing_on_its_node_while_nothing_changes(gpu_node: GpuNode):
    before = annotations(gpu_node)
    gpu_node.create(a_pod("busy", a_container()))
    gpu_node.wait_until_running("busy")
    after = annotations(gpu_node)
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert changed <= {HANDSHAKE}, "the handshake alone has its time"


def test_an_unhealthy_card_leaves_what_is_allocatable_and_comes_back(gpu_node: GpuNode):
    gpu_node.set_cards(unhealthy=(3,))
    gpu_node.wait_until(lambda: gpu_node.allocatable() == (CARDS - 1) * 10, "without the tiles of the card")
    ill = [device for device in read_node(gpu_node.node(), CATALOGUE).node.devices if not device.healthy]
    assert [device.index for device in ill] == [3]
    gpu_node.set_cards()
    gpu_node.wait_until(lambda: gpu_node.allocatable() == CARDS * 10, "with the card again")


def test_a_pod_that_names_its_node_itself_gets_cards_before_its_containers_start(gpu_node: GpuNode):
    gpu_node.create(a_pod("by-name", a_container(count=2, memory=2000), nodeName=gpu_node.name))
    gpu_node.wait_until_running("by-name")
    assert assert_sees_what_it_was_given(gpu_node, gpu_node.pods()["by-name"]) == 1


def test_a_container_that_was_given_nothing_is_not_started_and_its_pod_says_why(gpu_node: GpuNode):
    gpu_node.create(a_pod("too-much", a_container(memory=999_999), nodeName=gpu_node.name))

    def says_why() -> bool:
        events = json.loads(gpu_node.cluster.kubectl("get", "events", "-o", "json"))["items"]
        return any(event["involvedObject"]["name"] == "too-much" and "given no" in event["message"] for event in events)

    gpu_node.wait_until(says_why, "telling why the container does not start")
    assert not gpu_node.runs_of(gpu_node.pods()["too-much"], "main")


def test_containers_start_again_after_the_agent_was_killed_and_started(gpu_node: GpuNode):
    gpu_node.create(a_pod("one", a_container(then="sleep 5; exit 1")))
    gpu_node.wait_until_running("one")
    gpu_node.agent.kill()
    gpu_node.agent.restart()
    gpu_node.wait_until(lambda: restarts(gpu_node, "one") >= 1, "restarting its container")
    gpu_node.create(a_pod("two", a_container()))
    gpu_node.wait_until_running("two")
    assert assert_sees_what_it_was_given(gpu_node, gpu_node.pods()["one"]) >= 2
    assert_sees_what_it_was_given(gpu_node, gpu_node.pods()["two"])


def restarts(node: GpuNode, name: str) -> int:
    return node.pods()[name]["status"]["containerStatuses"][0]["restartCount"]


def test_cards_of_a_pod_deleted_by_force_are_free_only_when_its_processes_are_gone(gpu_node: GpuNode):
    first = a_container(count=CARDS, memory=80_000, cores=100, then=STUBBORN)
    gpu_node.create(a_pod("first", first, terminationGracePeriodSeconds=15))
    gpu_node.wait_until_running("first")
    uid = gpu_node.pods()["first"]["metadata"]["uid"]
    gpu_node.cluster.kubectl("delete", "pod", "first", "--force", "--grace-period=0")
    gpu_node.create(a_pod("second", a_container(count=CARDS, memory=80_000, cores=100)))
    gpu_node.wait_until_running("second")
    second = gpu_node.pods()["second"]
    assert_sees_what_it_was_given(gpu_node, second)
    assert ended_at(gpu_node, uid) <= started_at(second)


def ended_at(node: GpuNode, uid: str) -> str:
    """When the agent saw the pod's control group empty."""
    lease = json.loads(
        node.cluster.kubectl("get", "lease", "-n", "kube-system", f"tessera-agent-{node.name}", "-o", "json")
    )
    assert uid in lease["metadata"]["annotations"][keys.ENDED].split(",")
    return lease["spec"]["renewTime"]


def started_at(pod: dict[str, Any]) -> str:
    return pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]


def test_the_inventory_is_told_over_grpc_with_those_who_hold_cards(gpu_node: GpuNode):
    gpu_node.create(a_pod("holder", a_container(memory=1234)))
    with grpc.insecure_channel(f"{gpu_node.address}:9396") as channel:
        watch = channel.unary_stream(
            f"/{SERVICE}/Watch",
            request_serializer=WatchCardsRequest.SerializeToString,
            response_deserializer=Inventory.FromString,
        )(WatchCardsRequest(), timeout=60)
        for inventory in watch:
            if any(holder.pod == "holder" for card in inventory.cards for holder in card.holders):
                break
        watch.cancel()
        listed = channel.unary_unary(
            f"/{SERVICE}/List",
            request_serializer=ListCardsRequest.SerializeToString,
            response_deserializer=Inventory.FromString,
        )(ListCardsRequest(), timeout=10)
    (share,) = promised(gpu_node.pods()["holder"])["main"]
    (card,) = [card for card in listed.cards if card.uuid == share.uuid]
    assert listed.node == gpu_node.name
    assert [(holder.pod, holder.container, holder.memory_mib) for holder in card.holders] == [("holder", "main", 1234)]
    assert len(card.links) == CARDS - 1


def test_prometheus_reads_limits_and_health_by_the_old_and_the_new_names(gpu_node: GpuNode):
    gpu_node.create(a_pod("measured", a_container(memory=1000)))
    gpu_node.wait_until_running("measured")
    families = {family.name: family for family in text_string_to_metric_families(gpu_node.metrics())}
    for name, label in (("hami_vgpu_memory_limit_bytes", "pod"), ("vGPU_device_memory_limit_in_bytes", "podname")):
        (sample,) = [sample for sample in families[name].samples if sample.labels[label] == "measured"]
        assert sample.value == 1000 * 2**20
        assert sample.labels["zone"] == "vGPU"
    assert {sample.value for sample in families["tessera_card_healthy"].samples} == {1.0}
