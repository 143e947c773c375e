"""The library that keeps containers within their limits, on one node: brought there, and missed where it is not."""

from collections.abc import Callable
from pathlib import Path

import structlog

from tessera.node.settings import NodeSettings
from tessera.node.using import ContainerUses
from tessera.vendors.guard import LIBRARY, find_guard, hook_directory, install_guard

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
HAMI_LIBRARY = "/usr/lib/hami-core.so"


def bring_library(settings: NodeSettings) -> None:
    """Where this installation has one and the operator wants it. A host that cannot take it keeps what it has."""
    source = find_guard() if settings.library == "tessera" else None
    if source is None:
        return
    try:
        install_guard(source, hook_directory(settings.hook_path))
    except OSError as error:
        log.warning("in-container library not installed", error=str(error))


def host_has(settings: NodeSettings) -> Callable[[str], bool]:
    """Whether a file can be mounted into containers. Where HAMi's library is chosen, ours counts as not there."""
    own = f"{hook_directory(settings.hook_path)}/"

    def exists(path: str) -> bool:
        return (settings.library == "tessera" or not path.startswith(own)) and Path(path).exists()

    return exists


def limits_trouble(settings: NodeSettings, uses: ContainerUses) -> str:
    """One sentence about a node with NVIDIA cards whose containers are not kept within their limits."""
    ours = str(hook_directory(settings.hook_path) / LIBRARY)
    theirs = (HAMI_LIBRARY, f"{settings.hook_path}/vgpu/libvgpu.so")
    exists = host_has(settings)
    if not any(exists(path) for path in (ours, *theirs)):
        wanted = ours if settings.library == "tessera" else theirs[1]
        return f"{wanted} is not on the node, so containers are not kept within their limits; put it there"
    return explain_unheard(uses)


def explain_unheard(uses: ContainerUses) -> str:
    """One sentence about containers whose regions cannot be read, nothing where there is none."""
    if not uses.unreadable:
        return ""
    holder, why = next(iter(uses.unreadable.items()))
    others = f" and {len(uses.unreadable) - 1} more" if len(uses.unreadable) > 1 else ""
    return f"container {holder.container} of {holder.pod}{others} cannot be heard: {why}"
