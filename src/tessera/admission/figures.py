"""A container's limits, completed so that they say what the container will get.

Kubernetes, the kubelet and quotas see the limits only, and whoever looks at the pod sees them first. So a count that
was left out, a size that the hardware rounds up and the cores of a whole card are written down. What limits cannot
say (a share of memory, for most vendors) stays as the user put it and is read the same way again.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tessera.admission.habits import habit_of
from tessera.admission.patching import Change
from tessera.admission.pods import Asking
from tessera.model.catalogue import ResourceRole, Vendor
from tessera.model.mismatches import show
from tessera.model.pod_documents import NO_RESOURCES
from tessera.model.requests import DeviceRequest

_SELLS_CORES = "cores-make-cards"
"""The rule of a vendor whose plugin hands out cores or cards: asking for both would take both."""


class Figure(NamedTuple):
    """A limit to be written."""

    key: str
    value: str


def correct_figures(vendor: Vendor, asking: Asking, said: DeviceRequest, meant: DeviceRequest) -> Iterator[Figure]:
    """Limits that differ from what the user wrote: `said` is as they stand, `meant` what the vendor's rules make of it.

    A user should be told of each.
    """
    count_differs = said.count != meant.count or not _names_used(vendor, asking, "count")
    if count_differs and _SELLS_CORES not in vendor.rules:
        yield from _under_each_name(vendor, asking, "count", str(meant.count))
    if meant.memory_mib and said.memory_mib != meant.memory_mib:
        yield from _under_each_name(vendor, asking, "memory", _memory_text(vendor, meant.memory_mib))


def state_whole_cores(vendor: Vendor, asking: Asking, meant: DeviceRequest) -> Iterator[Figure]:
    is_stated = bool(_names_used(vendor, asking, "cores"))
    if habit_of(vendor.name).states_whole_cores and meant.cores_percent == 100 and not is_stated:
        yield from _under_each_name(vendor, asking, "cores", str(vendor.cores_per_card))


def write_figure(asking: Asking, figure: Figure) -> Iterator[Change]:
    """Into the limits; into the requests too where the key stands there, for Kubernetes wants the two equal."""
    resources = asking.container.resources or NO_RESOURCES
    yield Change((*asking.path, "resources", "limits", figure.key), figure.value)
    if figure.key in (resources.requests or {}):
        yield Change((*asking.path, "resources", "requests", figure.key), figure.value)


def explain_figure(vendor: Vendor, asking: Asking, figure: Figure) -> str:
    before = asking.container.figures.get(figure.key)
    was = show(before) if before is not None else f"missing beside {asking.container.keys_of(vendor)[0]}"
    return f'{figure.key} of {asking.label} was {was} and is now "{figure.value}"'


def _names_used(vendor: Vendor, asking: Asking, role: ResourceRole) -> tuple[str, ...]:
    figures = asking.container.figures
    return tuple(key for key in vendor.resources.of_role(role) if key in figures)


def _under_each_name(vendor: Vendor, asking: Asking, role: ResourceRole, value: str) -> Iterator[Figure]:
    """Under each name that the container uses, because names of one thing must agree; else under the vendor's own."""
    for key in _names_used(vendor, asking, role) or vendor.resources.of_role(role)[:1]:
        yield Figure(key, value)


def _memory_text(vendor: Vendor, memory_mib: int) -> str:
    return f"{memory_mib}Mi" if vendor.memory_takes_bytes else str(memory_mib // vendor.memory_unit_mib)
