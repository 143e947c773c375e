"""The same agent with another maker's cards: what differs is data."""

from collections.abc import Iterator

import pytest

from tests.node.conftest import AGENT, CARDS, GpuNode, a_container, a_pod
from tests.node.seeing import promised

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def amd_node(gpu_node: GpuNode) -> Iterator[GpuNode]:
    (gpu_node.plan.parent / "amd.toml").write_text('[[cards]]\nmodel = "MI300X"\ncount = 2\n')
    gpu_node.start_agent(**{"simulate-file": f"{AGENT}/amd.toml"})
    gpu_node.wait_until(lambda: gpu_node.allocatable("amd.com/gpu") == 20, "the kubelet counts AMD's tiles")
    yield gpu_node
    gpu_node.clear()
    gpu_node.start_agent()
    gpu_node.wait_until(lambda: gpu_node.allocatable() == CARDS * 10, "the kubelet counts NVIDIA's tiles again")


def test_a_container_gets_the_variables_of_its_vendor_and_the_node_forgets_the_cards_it_has_no_more(amd_node: GpuNode):
    annotations = amd_node.node()["metadata"]["annotations"]
    assert "hami.io/node-amd-register" in annotations
    assert not {"hami.io/node-nvidia-register", "hami.io/node-nvidia-score"} & annotations.keys()
    container = a_container()
    container["resources"]["limits"] = {"amd.com/gpu": "1", "amd.com/gpumem": "5000", "amd.com/gpucores": "50"}
    amd_node.create(a_pod("amd", container))
    amd_node.wait_until_running("amd")
    pod = amd_node.pods()["amd"]
    (share,) = promised(pod)["main"]
    (printed,) = amd_node.runs_of(pod, "main")
    for line in (f"ROCR_VISIBLE_DEVICES={share.uuid}", "HIP_DEVICE_MEMORY_LIMIT=5000m", "HSA_CU_MASK=0:0-151"):
        assert f"{line}\n" in printed
    assert f"card {share.uuid} memory_mib 5000 cores_percent 50\n" in printed
    assert "LD_AUDIT" not in printed, "the library is not on this host"
