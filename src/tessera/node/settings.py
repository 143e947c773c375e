"""What an operator may choose about a node's agent."""

from pathlib import Path

import msgspec

from tessera.model.annotations.registers import RegisterFormat
from tessera.node.runtimes import CdiChoice
from tessera.vendors.rendering import DEFAULT_HOOK_PATH


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`state_dir` keeps the tiles and must outlive the agent; `hook_path` is where the host keeps its `vgpu/`."""

    node: str
    kubelet_dir: Path = Path("/var/lib/kubelet")
    cdi_dir: Path = Path("/var/run/cdi")
    state_dir: Path = Path("/var/lib/tessera")
    cgroup_dir: Path = Path("/sys/fs/cgroup")
    hook_path: str = DEFAULT_HOOK_PATH
    register_format: RegisterFormat = RegisterFormat.SEED
    cdi: CdiChoice = "auto"
    legacy_metrics: bool = True
    ignored_xids: frozenset[int] = frozenset()
