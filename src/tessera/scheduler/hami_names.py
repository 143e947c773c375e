"""What HAMi calls its metrics and their labels, in its new names and its old ones: tables of names, without figures.

Dashboards and alerts ask for these exact names. Each table is filled by `hami_metrics`, a row for each card, share,
slice or quota.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Family(NamedTuple):
    """`value` and `labels` are columns of the table. The old name may show another column, and none is no old name."""

    name: str
    old_name: str
    help: str
    labels: tuple[str, ...]
    value: str
    old_value: str = ""
    old_labels: tuple[str, ...] = ()


class Table(NamedTuple):
    """Equal rows behind several families. `old_labels` are what columns were called."""

    columns: tuple[str, ...]
    old_labels: Mapping[str, str]
    families: tuple[Family, ...]


_CARD = ("node", "device_uuid", "device_index", "device_type")
CARDS = Table(
    columns=(
        *_CARD,
        *("device_cores", "device_memory_limit", "memory", "memory_used", "memory_ratio"),
        *("slots_used", "cores_used", "cores_percent", "whole"),
    ),
    old_labels={
        "node": "nodeid",
        "device_uuid": "deviceuuid",
        "device_index": "deviceidx",
        "device_type": "devicetype",
        "device_cores": "devicecores",
        "device_memory_limit": "devicememorylimit",
    },
    families=(
        Family("hami_gpu_memory_limit_bytes", "GPUDeviceMemoryLimit", "Memory of a card.", _CARD, "memory"),
        Family("hami_gpu_core_limit_ratio", "GPUDeviceCoreLimit", "Cores of a card.", _CARD, "whole", "device_cores"),
        Family(
            "hami_gpu_memory_allocated_bytes",
            "GPUDeviceMemoryAllocated",
            "Memory of a card that is promised.",
            (*_CARD, "device_cores"),
            "memory_used",
        ),
        Family("hami_gpu_shared_count", "GPUDeviceSharedNum", "Containers that share a card.", _CARD, "slots_used"),
        Family(
            "hami_gpu_core_allocated_ratio",
            "GPUDeviceCoreAllocated",
            "Cores of a card that are promised.",
            _CARD,
            "cores_percent",
            "cores_used",
        ),
        Family(
            "hami_node_gpu_overview",
            "nodeGPUOverview",
            "Memory of a card that is promised, with what the card has.",
            (*_CARD, "device_cores", "device_memory_limit"),
            "memory_used",
        ),
        Family(
            "hami_node_gpu_memory_allocated_ratio",
            "nodeGPUMemoryPercentage",
            "Part of a card's memory that is promised, from 0 to 1.",
            _CARD,
            "memory_ratio",
            old_labels=("node", "device_uuid", "device_index"),
        ),
    ),
)
_SHARE = ("namespace", "node", "pod", "container_index", "device_uuid")
SHARES = Table(
    columns=(*_SHARE, "memory", "cores"),
    old_labels={
        "namespace": "podnamespace",
        "node": "nodename",
        "pod": "podname",
        "container_index": "containeridx",
        "device_uuid": "deviceuuid",
    },
    families=(
        Family(
            "hami_vgpu_memory_allocated_bytes", "vGPUMemoryAllocated", "Memory a container was given.", _SHARE, "memory"
        ),
        Family("hami_vgpu_core_allocated_ratio", "vGPUCoreAllocated", "Cores a container was given.", _SHARE, "cores"),
    ),
)
QUOTAS = Table(
    columns=("namespace", "quota_name", "limit", "used"),
    old_labels={"namespace": "quotanamespace", "quota_name": "quotaName", "limit": "limit"},
    families=(
        Family(
            "hami_resource_quota_used",
            "QuotaUsed",
            "What a namespace holds, where a quota bounds it.",
            ("namespace", "quota_name", "limit"),
            "used",
        ),
        Family("hami_resource_quota_limit", "", "What a quota allows.", ("namespace", "quota_name"), "limit"),
    ),
)
_INSTANCE = ("mig_uuid", "profile", "gpu_instance_id", "compute_instance_id", "placement_start", "placement_size")
SLICES = Table(
    columns=("node", "device_uuid", "device_index", *_INSTANCE, "mig_name", "one"),
    old_labels={
        "node": "nodeid",
        "device_uuid": "deviceuuid",
        "device_index": "deviceidx",
        "mig_name": "migname",
    },
    families=(
        Family(
            "hami_node_gpu_mig_instance_info",
            "nodeGPUMigInstance",
            "Hardware slices of cards that pods hold.",
            ("node", "device_uuid", "device_index", *_INSTANCE),
            "one",
            old_labels=("node", "device_uuid", "device_index", "mig_name"),
        ),
    ),
)
