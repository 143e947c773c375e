"""A tile as a CDI specification: what the container runtime adds to the container that names it."""

from typing import Any

from tessera.node.tiles import CDI_KIND
from tessera.vendors.rendering import ContainerEdits, Mount

CDI_VERSION = "0.6.0"


def cdi_document(token: str, edits: ContainerEdits) -> dict[str, Any]:
    """The tile's own variable is always there: runtimes refuse a device that changes nothing."""
    environment = {"TESSERA_TILE": token, **edits.environment}
    container: dict[str, Any] = {"env": [f"{name}={value}" for name, value in environment.items()]}
    if edits.device_paths:
        container["deviceNodes"] = [{"path": path, "permissions": "rw"} for path in edits.device_paths]
    if edits.mounts:
        container["mounts"] = [_mount(mount) for mount in edits.mounts]
    return {
        "cdiVersion": CDI_VERSION,
        "kind": CDI_KIND,
        "devices": [{"name": token, "containerEdits": container}],
    }


def _mount(mount: Mount) -> dict[str, Any]:
    access = "ro" if mount.read_only else "rw"
    options = [access, "nosuid", "nodev", "rbind"]
    return {"hostPath": mount.host_path, "containerPath": mount.container_path, "options": options}
