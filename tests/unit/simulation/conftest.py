"""A trace small enough to check by hand."""

from pathlib import Path

import pytest

NODES = """sn,cpu_milli,memory_mib,gpu,model
n-1,32000,131072,2,A
n-0,32000,131072,2,A
n-2,64000,262144,4,B
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos
p-3,4000,8192,2,1000,,LS
p-1,4000,8192,1,500,,LS
p-2,4000,8192,1,1000,B,BE
p-0,4000,8192,0,0,,LS
"""


@pytest.fixture
def trace(tmp_path: Path) -> tuple[Path, Path]:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(NODES)
    pods.write_text(PODS)
    return nodes, pods
