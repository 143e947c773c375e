"""A device plugin and an exporter as processes of their own, beside each other where an agent would be."""

import sys
from collections.abc import Iterator

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tessera.node.inventory_service import SERVICE
from tessera.node.protocols.inventory_pb2 import Inventory, ListCardsRequest
from tests.node.conftest import AGENT, GpuNode, a_container, a_pod
from tests.node.seeing import assert_sees_what_it_was_given

pytestmark = pytest.mark.timeout(300)
HEALTH_PORT = 9395
STRAYS = "tessera_stray_containers"


def start(node: GpuNode, component: str, kubeconfig: str, *flags: str) -> None:
    command = [sys.executable, "-m", "tessera.apps.cli", "run", component, f"--kubeconfig={kubeconfig}"]
    same = (f"--node={node.name}", f"--simulate-file={AGENT}/cards.toml")
    node.cluster.machine.start(component, [*command, *same, *flags])


@pytest.fixture
def pair(gpu_node_of_package: GpuNode) -> Iterator[GpuNode]:
    """The exporter may read pods and nothing else; an agent does it all again afterwards."""
    node, control_plane = gpu_node_of_package, gpu_node_of_package.cluster.control_plane
    node.agent.stop()
    kubectl = node.cluster.kubectl
    kubectl("create", "clusterrole", "exporter", "--verb=list,watch", "--resource=pods")
    kubectl("create", "clusterrolebinding", "exporter", "--clusterrole=exporter", "--user=exporter")
    plugin_flags = (f"--hook-path={AGENT}/hook", f"--health=0.0.0.0:{HEALTH_PORT}")
    start(node, "device-plugin", str(control_plane.kubeconfig_for("plugin", ["system:masters"])), *plugin_flags)
    figures = ("--metrics=0.0.0.0:9394", "--inventory=0.0.0.0:9396")
    start(node, "exporter", str(control_plane.kubeconfig_for("exporter")), *figures)
    node.wait_until(lambda: node.status_of(HEALTH_PORT, "/readyz") == 200, "the device plugin is registered")
    node.wait_until(lambda: node.status_of(9394, "/readyz") == 200, "the exporter knows the pods")
    yield node
    node.clear()
    for component in ("device-plugin", "exporter"):
        node.cluster.machine.programs[component].stop()
    kubectl("delete", "clusterrolebinding,clusterrole", "exporter")
    node.start_agent()


def limits_shown(node: GpuNode) -> dict[str, float]:
    """What each pod may use, by the exporter's figures."""
    families = {family.name: family for family in text_string_to_metric_families(node.metrics())}
    assert [sample.value for sample in families[STRAYS].samples] == [0.0]
    return {sample.labels["pod"]: sample.value for sample in families["hami_vgpu_memory_limit_bytes"].samples}


def holders_told(node: GpuNode) -> list[tuple[str, int]]:
    with grpc.insecure_channel(f"{node.address}:9396") as channel:
        listed: Inventory = channel.unary_unary(
            f"/{SERVICE}/List",
            request_serializer=ListCardsRequest.SerializeToString,
            response_deserializer=Inventory.FromString,
        )(ListCardsRequest(), timeout=10)
    return [(holder.pod, holder.memory_mib) for card in listed.cards for holder in card.holders]


def test_a_pod_gets_its_cards_from_the_one_and_is_shown_by_the_other_until_it_is_gone(pair: GpuNode):
    pair.create(a_pod("shared", a_container(memory=1234)))
    pair.wait_until_running("shared")

    assert_sees_what_it_was_given(pair, pair.pods()["shared"])
    pair.wait_until(lambda: limits_shown(pair) == {"shared": 1234 * 2**20}, "shown to Prometheus")
    assert holders_told(pair) == [("shared", 1234)]
    assert pair.status_of(HEALTH_PORT, "/metrics") == 404

    pair.delete("shared")
    pair.wait_until(lambda: not limits_shown(pair), "shown no more")
    assert holders_told(pair) == []
