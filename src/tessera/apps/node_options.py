"""What the processes of a node are told on their command line, read and checked before anything starts."""

import os
import socket

import msgspec

from tessera.apps.node_flags import FiguresFlags, KubeletFlags, NodeFlags
from tessera.errors import InvalidRequest
from tessera.model.annotations.registers import RegisterFormat
from tessera.node.settings import NodeSettings
from tessera.node.terms import Permitted


def read_settings(flags: NodeFlags) -> NodeSettings:
    """What all of them go by; the kubelet and the figures are as by default."""
    if flags["simulate"] and flags["simulate_file"]:
        raise InvalidRequest("--simulate and --simulate-file are both given, expected one of them; drop one")
    return NodeSettings(
        node=flags["node"] or os.environ.get("NODE_NAME", "") or socket.gethostname().lower(),
        state_dir=flags["state_dir"],
        run_dir=flags["run_dir"],
        cgroup_dir=flags["cgroup_dir"],
        ignored_xids=frozenset(flags["ignore_xid"]),
    )


def with_kubelet(settings: NodeSettings, flags: KubeletFlags) -> NodeSettings:
    return msgspec.structs.replace(
        settings,
        kubelet_dir=flags["kubelet_dir"],
        cdi_dir=flags["cdi_dir"],
        hook_path=flags["hook_path"],
        register_format=RegisterFormat(flags["register_format"]),
        cdi=flags["cdi"],
        library=flags["library"],
        permitted=Permitted(cores_policy=flags["cores_policy"], spill_percent=flags["spill_percent"]),
    )


def with_figures(settings: NodeSettings, flags: FiguresFlags) -> NodeSettings:
    return msgspec.structs.replace(settings, legacy_metrics=flags["legacy_metrics"])
