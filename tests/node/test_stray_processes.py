"""Who is on the cards of a node and in no container's account: told of, and hidden by nobody."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tessera.node.regions import FIRST_SLOT
from tessera.vendors.simulated_driver import BUILT, DIRECTORY_VARIABLE, LIBRARY_PATH
from testbed.program import Program
from tests.node.conftest import GpuNode, a_pod
from tests.node.programs import LOOKING, a_program, load_programs

pytestmark = pytest.mark.timeout(300)
SIM = "/var/lib/tessera/sim"
HOLD = """
import signal, time
print(alloc(100), flush=True)
time.sleep(1000)
"""
NAME_A_STRANGER = """
import struct, time
print(alloc(100), flush=True)
with open("/run/tessera/tile/region", "r+b") as region:
    region.seek({first_slot} + 8)
    region.write(struct.pack("=Q", {pid}))
time.sleep(1000)
"""


@pytest.fixture(scope="module", autouse=True)
def _image(gpu_node_of_package: GpuNode) -> None:
    load_programs(gpu_node_of_package)


@pytest.fixture
def stranger(gpu_node: GpuNode) -> Iterator[Program]:
    """A program of the node itself, on one of its cards."""
    environment = {DIRECTORY_VARIABLE: SIM, LIBRARY_PATH: str(BUILT)}
    command = [sys.executable, "-c", LOOKING + HOLD]
    program = gpu_node.cluster.machine.start("stranger", command, environment=environment)
    yield program
    program.kill()


def test_processes_in_containers_are_accounted_for_and_others_are_told_of_whoever_names_them(
    gpu_node: GpuNode, stranger: Program
):
    gpu_node.create(a_pod("honest", a_program(HOLD)))
    told = gpu_node.wait_until(lambda: told_of(gpu_node), "telling of the stranger")
    assert len(told) == 1
    pid = told[0].split()[1]
    assert told[0].startswith(f"process {pid} of no pod has 400 MiB of GPU-")
    assert "time.sleep" in gpu_node.cluster.machine.run("cat", f"/proc/{pid}/cmdline"), "its number on the node"
    naming = NAME_A_STRANGER.format(first_slot=FIRST_SLOT, pid=pid)
    gpu_node.create(a_pod("hiding", a_program(naming)))
    gpu_node.wait_until(lambda: len(told_of(gpu_node)) == 2, "telling of who has lost its own account by that")
    uid = gpu_node.pods()["hiding"]["metadata"]["uid"]
    assert any(f"of the pod with UID {uid}" in said for said in told_of(gpu_node))
    assert strays(gpu_node) == 2
    gpu_node.clear()
    stranger.kill()
    gpu_node.wait_until(lambda: strays(gpu_node) == 0, "free of strays")


def told_of(node: GpuNode) -> list[str]:
    events: list[dict[str, Any]] = json.loads(node.cluster.kubectl("get", "events", "-A", "-o", "json"))["items"]
    return [event["message"] for event in events if event["reason"] == "StrayProcess"]


def strays(node: GpuNode) -> float:
    families = text_string_to_metric_families(node.metrics())
    return sum(sample.value for one in families for sample in one.samples if sample.name == "tessera_stray_processes")


def test_a_fault_of_a_simulated_card_takes_its_tiles_away_from_the_kubelet(gpu_node: GpuNode):
    before = gpu_node.allocatable()
    sim = gpu_node.cluster.machine.host_path(SIM)
    card = (sim / "cards").read_text().split("\t")[0]
    with (sim / "faults").open("a") as faults:
        faults.write(f"{card} 79\n")
    gpu_node.wait_until(lambda: gpu_node.allocatable() == before - 10, "without the card's tiles")
    gpu_node.start_agent()
    gpu_node.wait_until(lambda: gpu_node.allocatable() == before, "trusting the card anew")
