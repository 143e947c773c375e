"""What a container really sees of its cards: it asks the simulated driver, as a CUDA program asks the real one."""

from typing import Any

import pytest

from tests.node.conftest import GpuNode, a_pod
from tests.node.programs import SEE, a_program, load_programs, said_by
from tests.node.seeing import promised

pytestmark = pytest.mark.timeout(300)
MODEL, SHARE_MIB = "NVIDIA A100-SXM4-80GB", 1000


@pytest.fixture(scope="module", autouse=True)
def _image(gpu_node_of_package: GpuNode) -> None:
    load_programs(gpu_node_of_package)


def seen_by(node: GpuNode, name: str, **variables: str) -> dict[str, Any]:
    """What a container with two cards and these variables of its own sees."""
    env = [{"name": variable, "value": value} for variable, value in variables.items()]
    node.create(a_pod(name, a_program(SEE, count=2, memory=SHARE_MIB, env=env), restartPolicy="Never"))
    return said_by(node, name)


def assert_sees_its_cards(node: GpuNode, name: str, **variables: str) -> None:
    seen = seen_by(node, name, **variables)
    uuids = sorted(share.uuid for share in promised(node.pods()[name])["main"])
    assert sorted(seen["cuda"]) == [[uuid, MODEL, SHARE_MIB] for uuid in uuids], "as large as its share"
    assert sorted(seen["nvml"]) == uuids


def test_a_container_sees_exactly_its_cards_through_cuda_and_nvml(gpu_node: GpuNode):
    assert_sees_its_cards(gpu_node, "looking")


def test_without_cdi_a_container_sees_exactly_its_cards_too(early_node: GpuNode):
    assert_sees_its_cards(early_node, "looking-early")


def test_a_pod_that_names_all_cards_in_its_environment_sees_its_own_all_the_same(gpu_node: GpuNode):
    assert_sees_its_cards(gpu_node, "greedy", NVIDIA_VISIBLE_DEVICES="all")


def test_a_container_chooses_among_its_cards_and_keeps_its_own_libraries(gpu_node: GpuNode):
    seen = seen_by(gpu_node, "choosing", CUDA_VISIBLE_DEVICES="1", LD_LIBRARY_PATH="/opt/own")
    assert [card[0] for card in seen["cuda"]] == seen["nvml"][1:], "NVML shows both"
    assert len(seen["nvml"]) == 2
    assert seen["libraries"] == "/opt/own"
