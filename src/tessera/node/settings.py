"""What an operator may choose about a node's agent."""

from pathlib import Path
from typing import Literal

import msgspec

from tessera.model.annotations.registers import RegisterFormat
from tessera.node.runtimes import CdiChoice
from tessera.node.terms import NOTHING_MORE, Permitted
from tessera.vendors.rendering import DEFAULT_HOOK_PATH, DEFAULT_RUN_PATH

LibraryChoice = Literal["tessera", "hami"]


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`state_dir` keeps the tiles and must outlive the agent; `run_dir` is what containers share with it.

    `hook_path` is where the host keeps libraries for containers, `library` which of them they get.
    """

    node: str
    kubelet_dir: Path = Path("/var/lib/kubelet")
    cdi_dir: Path = Path("/var/run/cdi")
    state_dir: Path = Path("/var/lib/tessera")
    run_dir: Path = Path(DEFAULT_RUN_PATH)
    cgroup_dir: Path = Path("/sys/fs/cgroup")
    hook_path: str = DEFAULT_HOOK_PATH
    library: LibraryChoice = "tessera"
    permitted: Permitted = NOTHING_MORE
    register_format: RegisterFormat = RegisterFormat.SEED
    cdi: CdiChoice = "auto"
    legacy_metrics: bool = True
    ignored_xids: frozenset[int] = frozenset()
