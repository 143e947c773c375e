"""The same agent with another maker's cards: what differs is data."""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.fixtures import require
from tests.node.conftest import AGENT, CARDS, GpuNode, a_container, a_pod
from tests.node.programs import a_program, load_programs
from tests.node.seeing import promised
from tests.repository.files import ROOT

pytestmark = pytest.mark.timeout(300)
ZIG = ROOT / ".zig"
STAND_IN = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void tell(void) {
    const char *names[] = {"CUDA_MEM_LIMIT_0", "CUDA_CORE_LIMIT", "NPU_MEM_QUOTA", "NPU_PRIORITY"};
    for (int name = 0; name < 4; name++)
        if (getenv(names[name]))
            printf("told %s %s\\n", names[name], getenv(names[name]));
    fflush(stdout);
}
"""
"""A library of a vendor, as far as we can tell: it is loaded into every program, and says what it was told."""


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


@pytest.fixture
def makers_node(gpu_node: GpuNode, tmp_path: Path) -> Iterator[GpuNode]:
    """With cards of Iluvatar's and of Huawei's, and a stand-in for the library of each."""
    require(ZIG.exists(), "the C compiler is not there; `make native` brings it")
    load_programs(gpu_node)
    hook = gpu_node.plan.parent / "hook"
    library = build_stand_in(tmp_path)
    preload = "/hami-vnpu-core/libvnpu.so\n"
    for place, content in (
        ("iluvatar/libvgpu-control.so", library),
        ("hami-vnpu-core/libvnpu.so", library),
        ("hami-vnpu-core/ld.so.preload", preload.encode()),
    ):
        (hook / place).parent.mkdir(parents=True, exist_ok=True)
        (hook / place).write_bytes(content)
    cards = '[[cards]]\nmodel = "BI-V150"\ncount = 1\n[[cards]]\nmodel = "Ascend910B3"\ncount = 1\n'
    (gpu_node.plan.parent / "makers.toml").write_text(cards)
    gpu_node.start_agent(**{"simulate-file": f"{AGENT}/makers.toml"})
    gpu_node.wait_until(lambda: gpu_node.allocatable("huawei.com/Ascend910B3"), "the kubelet counts Huawei's tiles")
    gpu_node.wait_until(lambda: gpu_node.allocatable("iluvatar.ai/BI-V150-vgpu"), "the kubelet counts Iluvatar's")
    yield gpu_node
    gpu_node.clear()
    gpu_node.start_agent()
    gpu_node.wait_until(lambda: gpu_node.allocatable() == CARDS * 10, "the kubelet counts NVIDIA's tiles again")


def build_stand_in(directory: Path) -> bytes:
    source, built = directory / "library.c", directory / "library.so"
    source.write_text(STAND_IN)
    target = f"{platform.machine()}-linux-gnu.2.17"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-shared", "-fPIC"]
    subprocess.run([*compiler, "-o", built, source], check=True, env=os.environ | {"PYTHONPATH": str(ZIG)})
    return built.read_bytes()


def test_the_library_of_a_vendor_is_loaded_into_containers_and_told_their_limits(makers_node: GpuNode):
    def program(limits: dict[str, str]) -> dict[str, Any]:
        return a_program("") | {"command": ["/usr/bin/python3", "-c", "print('ran')"], "resources": {"limits": limits}}

    iluvatar = {"iluvatar.ai/BI-V150-vgpu": "1", "iluvatar.ai/BI-V150.vMem": "32", "iluvatar.ai/BI-V150.vCore": "25"}
    ascend = {
        "huawei.com/Ascend910B3": "1",
        "huawei.com/Ascend910B3-memory": "5000",
        "huawei.com/Ascend910B3-core": "5",
    }
    soft = a_pod("ascend", program(ascend), restartPolicy="Never")
    soft["metadata"]["annotations"] = {"huawei.com/vnpu-mode": "hami-core"}
    makers_node.create(a_pod("iluvatar", program(iluvatar), restartPolicy="Never"), soft)
    for name, told in (
        ("iluvatar", "told CUDA_MEM_LIMIT_0 8192m\ntold CUDA_CORE_LIMIT 25\nran\n"),
        ("ascend", "told NPU_MEM_QUOTA 5000\ntold NPU_PRIORITY 25\nran\n"),
    ):
        makers_node.wait_until(
            lambda name=name, told=told: makers_node.runs_of(makers_node.pods()[name], "main") == [told],
            f"{name} to say what its library was told",
        )
